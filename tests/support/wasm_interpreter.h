// wasm_interpreter.h: the tools' runtime that interprets, for tests: nothing may go wrong in it.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/null_runtime.h"
#include "tools/interpreter_runtime.h"

namespace uptier::wasm::test {

class InterpreterRuntime final : public tools::InterpreterRuntime {
 public:
  ~InterpreterRuntime() override { EXPECT_EQ(problem(), ""); }
};

}  // namespace uptier::wasm::test
