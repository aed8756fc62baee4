// null_runtime.h: the tools' runtime that observes nothing, for tests.
#pragma once

#include "tools/null_runtime.h"

namespace uptier::test {

using tools::NullRuntime;

}  // namespace uptier::test
