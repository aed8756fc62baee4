// The hand-encoded loads and stores of frame slots have the same bytes as the assembler's.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "jit/x64/code_buffer.h"
#include "jit/x64/macros.h"
#include "tests/support/code_machine.h"

namespace uptier::test::frame_move_test {
namespace {

std::string bytes_since(jit::Assembler& a, size_t start) {
  const uint8_t* data = a.bufferData();
  return {data + start, data + a.offset()};
}

TEST(FrameMove, writes_what_the_assembler_writes) {
  CodeMachine machine;
  jit::CodeBuffer b(*machine.space);
  jit::Assembler& a = b.assembler();
  for (uint32_t id = 0; id < 16; ++id) {
    for (bool wide : {false, true}) {
      for (int32_t at : {0, 8, 127, 128, -1, -8, -16, -128, -129, -1024, INT32_MAX, INT32_MIN}) {
        jit::Gp reg = jit::gp(id, wide);
        jit::Mem slot = jit::x86::ptr(jit::x86::rbp, at, wide ? 8 : 4);
        std::string where = "register " + std::to_string(id) + " at " + std::to_string(at);
        size_t first = a.offset();
        a.mov(reg, slot);
        a.mov(slot, reg);
        std::string expected = bytes_since(a, first);
        first = a.offset();
        emit_frame_load(b, jit::x86::gpq(id), at, wide);
        emit_frame_store(b, at, jit::x86::gpq(id), wide);
        EXPECT_EQ(bytes_since(a, first), expected) << where;
      }
    }
  }
  EXPECT_TRUE(b.status().ok());
}

}  // namespace
}  // namespace uptier::test::frame_move_test
