// Says in the log what slow paths have counted and may not say themselves (base/notices.h).
//
//   Thread: any that has no guest frame below it.
#pragma once

namespace uptier::tiering {

struct Engine;

void say_noticed(Engine& engine) noexcept;

}  // namespace uptier::tiering
