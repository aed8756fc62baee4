// The text of a method's IR, for people.
//
//   Thread: any, without the state mutex.
#pragma once

#include <string>

#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct Engine;

// See Runtime::ir.
Result<std::string> ir_text(Engine& engine, MethodId m);

}  // namespace uptier::tiering
