// The choice of the parameters that are worth probing, and the places of their probes.
#include "jit/analysis/param_uses.h"

#include <gtest/gtest.h>

#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"

namespace uptier::test::param_uses_test {
namespace {

jit::Function parse(std::string_view body) {
  auto m = jit::parse_module(body, {.file = "test"});
  EXPECT_TRUE(m.ok()) << m.error().message;
  return m.ok() ? m->functions.front() : jit::Function{};
}

using Params = std::vector<uint32_t>;

TEST(ParamUses, divisors_bounds_and_switches_tell_but_addends_do_not) {
  jit::Function f = parse(R"(
func @f(i32, i32, i32, i32, i64) -> i32 {
b0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i64):
  v5 = const.i32 1
  v6 = add.i32 v3, v5
  jump b1(v0)
b1(v7: i32):
  loop_header
  v8 = div_u.i32 v7, v6
  v9 = add.i32 v8, v2
  v10 = lt_u.i32 v9, v1
  branch v10, b1(v9), b2
b2:
  return v9
}
)");
  // v3, through v6, is a divisor in a loop; v1 is the loop's bound, v0 its start; v2 is only added.
  EXPECT_EQ(jit::telling_params(f, jit::find_loop_forest(f)), (Params{3, 1}));
  EXPECT_EQ(jit::telling_params(f, jit::find_loop_forest(f), 1), (Params{3}));
}

TEST(ParamUses, a_test_of_null_alone_is_not_worth_a_probe) {
  jit::Function f = parse(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  v1 = eqz.i32 v0
  branch v1, b1, b2
b1:
  v2 = const.i32 3
  return v2
b2:
  return v0
}
)");
  EXPECT_TRUE(jit::telling_params(f, jit::find_loop_forest(f)).empty());
}

TEST(ParamUses, probes_come_last_in_numbers_and_first_in_the_entry) {
  jit::Function f = parse(R"(
func @f(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  probe value 4 v0
  v2 = const.i64 0
  v3 = eq.i64 v0, v2
  branch v3, b1, b2
b1:
  return v2
b2:
  v4 = rem_s.i64 v0, v1
  return v4
}
)");
  uint32_t sites = f.site_count;
  uint64_t hash = f.cfg_hash;
  jit::place_param_probes(f, jit::find_loop_forest(f));
  EXPECT_EQ(f.site_count, sites + 1);
  EXPECT_EQ(f.cfg_hash, hash);
  EXPECT_EQ(jit::param_sites(f), (std::vector<jit::ParamSite>{{1, sites + 1}}));
  EXPECT_TRUE(jit::verify(f).ok()) << jit::verify(f).error().message;
  std::string text = jit::to_text(f);
  EXPECT_NE(text.find("probe value " + std::to_string(sites + 1) + " own v1"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace uptier::test::param_uses_test
