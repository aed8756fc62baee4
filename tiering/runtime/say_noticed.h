// Writes messages about losses that slow paths could only count (base/notices.h).
//
//   Thread: any without guest frames.
#pragma once

namespace uptier::tiering {

struct Engine;

void say_noticed(Engine& engine) noexcept;

}  // namespace uptier::tiering
