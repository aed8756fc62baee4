// A runtime for each tenant of a process.
#include <gtest/gtest.h>

#include "tests/support/workshop.h"

namespace uptier::test::many_runtimes_test {
namespace {

TEST(ManyRuntimes, live_at_the_same_time_and_each_runs_and_traps) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kRuntimes = 80;
#else
  constexpr size_t kRuntimes = 300;
#endif
  std::vector<std::unique_ptr<Workshop>> all;
  std::vector<MethodId> divisions;
  for (size_t i = 0; i < kRuntimes; ++i) {
    all.push_back(std::make_unique<Workshop>(options({{"workers", "0"}, {"code_budget", "1M"}})));
    divisions.push_back(all.back()->add("hundredth", kOne, [](FunctionBuilder& b) {
      b.ret(b.binary(Opcode::kDivU, b.i64(100), b.param(0)));
    }));
  }
  for (size_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->call(divisions[i], {4}).bits, 25u) << i;
      Outcome o = all[i]->call(divisions[i], {0});
      EXPECT_EQ(o.trap.code, TrapCode::kDivideByZero) << i;
      EXPECT_EQ(o.trap.method, divisions[i]);
    }
    // Destroys every second runtime: their registry slots are skipped, and later slots are still
    // found.
    if (round == 0) {
      for (size_t i = 0; i + 1 < all.size(); ++i) {
        all.erase(all.begin() + static_cast<ptrdiff_t>(i));
        divisions.erase(divisions.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  }
}

}  // namespace
}  // namespace uptier::test::many_runtimes_test
