// The folding of operations into the address of an access.
#include "jit/x64/address.h"

#include <gtest/gtest.h>

#include "jit/frontend/parse.h"
#include "tests/support/ir_corpus.h"

namespace uptier::test::address_test {
namespace {

jit::x64::AddressParts parts_of_first_load(const jit::Function& f) {
  for (jit::InstId id : f.block(f.entry()).insts) {
    if (f.inst(id).op == Opcode::kLoad) return jit::x64::take_apart(f, f.inst(id));
  }
  return {};
}

TEST(Address, a_sum_below_a_shift_is_an_offset) {
  jit::Module m = *jit::parse_module(R"(func @next(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = const.i64 1
  v3 = add.i64 v1, v2
  v4 = const.i64 3
  v5 = shl.i64 v3, v4
  v6 = load.i64 v0[v5]+4
  return v6
}
)",
                                     {"next", {}});
  jit::x64::AddressParts p = parts_of_first_load(m.functions[0]);
  EXPECT_EQ(p.index, m.functions[0].params(m.functions[0].entry())[1]);
  EXPECT_EQ(p.scale, 3);
  EXPECT_EQ(p.offset, 12);
}

// A sum of i32 may wrap around before it is shifted, so it cannot be folded.
TEST(Address, a_sum_that_may_wrap_around_stays) {
  jit::Module m = *jit::parse_module(R"(func @next(i64, i32) -> i64 {
b0(v0: i64, v1: i32):
  v2 = const.i32 65535
  v3 = and.i32 v1, v2
  v4 = const.i32 -1
  v5 = add.i32 v3, v4
  v6 = const.i32 3
  v7 = shl.i32 v5, v6
  v8 = load.i64 v0[v7]
  return v8
}
)",
                                     {"next", {}});
  EXPECT_FALSE(parts_of_first_load(m.functions[0]).taken);
}

}  // namespace
}  // namespace uptier::test::address_test
