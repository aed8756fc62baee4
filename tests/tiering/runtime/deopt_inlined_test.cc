// Guards of inlined bodies in a runtime: where they exit to, which method their exits count for,
// and how the callers are treated if a guard fails too often.
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/frontend/builder_access.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::deopt_inlined_test {
namespace {

// `add` exits to its host on overflow; `twice` calls it in a loop.
constexpr const char* kText = R"(
func @add(i32, i32) -> i64 {
b0(v0: i32, v1: i32):
  v2 = add_overflows.i32 v0, v1
  v3 = eqz.i32 v2
  frame_state pc=12 [v0, v1]
  guard v3, overflow @9
  v4 = add.i32 v0, v1
  v5 = extend_s.i64 v4
  return v5
}
func @twice(i32, i32, i64) -> i64 {
b0(v0: i32, v1: i32, v2: i64):
  v3 = const.i32 2
  jump b1(v3, v2)
b1(v4: i32, v5: i64):
  loop_header 0 pc=1 []
  v6 = call @add(v0, v1)
  v7 = mul.i64 v2, v6
  v8 = add.i64 v5, v7
  v9 = const.i32 1
  v10 = sub.i32 v4, v9
  branch v10, b1(v10, v8), b2
b2:
  return v8
}
)";

class Pair : public Host {
 public:
  explicit Pair(std::initializer_list<std::pair<const char*, const char*>> set)
      : module_(parse_or_die(kText)) {
    Options o;
    for (auto [name, value] : set) EXPECT_TRUE(o.set(name, value).ok());
    Result<std::unique_ptr<Runtime>> r = Runtime::create(o);
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
    for (uint32_t i = 0; i < 2; ++i) {
      MethodInfo info{.key = {1, i},
                      .name = module_.functions[i].name,
                      .signature = module_.functions[i].signature()};
      if (i == 0) info.host_resume = &Pair::resume;
      EXPECT_TRUE(runtime->add_method(*this, std::move(info)).ok());
    }
    resumed = 0;
  }
  ~Pair() override { runtime.reset(); }
  Status build(MethodId m, FunctionBuilder& b) override {
    BuilderAccess::adopt(b, module_.functions[m.index()]);
    return {};
  }
  static uint64_t resume(const HostFrame* f) {
    ++resumed;
    EXPECT_EQ(f->method.index(), 0u);
    EXPECT_EQ(f->pc, 12u);
    auto a = static_cast<int32_t>(f->slots[0]), b = static_cast<int32_t>(f->slots[1]);
    return static_cast<uint64_t>(int64_t{a} + b);
  }

  int64_t twice(int32_t a, int32_t b, int64_t c) {
    uint64_t args[] = {static_cast<uint32_t>(a), static_cast<uint32_t>(b),
                       static_cast<uint64_t>(c)};
    Outcome o = runtime->invoke(MethodId(1), args);
    EXPECT_TRUE(o.ok());
    return static_cast<int64_t>(o.bits);
  }
  MethodReport report_of(std::string_view name) const {
    Report all = runtime->report();
    auto at = std::ranges::find(all.methods, name, &MethodReport::name);
    return at == all.methods.end() ? MethodReport() : *at;
  }
  MethodReport add() const { return report_of("add"); }
  // Returns the number of bodies inlined into the code that calls of `twice` reach.
  uint32_t inlined() const {
    uint32_t most = 0;
    MethodReport m = report_of("twice");
    for (const VersionReport& v : m.versions) {
      bool best = v.tier == Tier::kOptimized && v.copy == Copy::kPlain && !v.retired;
      if (best) most = std::max(most, v.inlined);
    }
    return most;
  }

  std::unique_ptr<Runtime> runtime;
  inline static uint64_t resumed = 0;

 private:
  jit::Module module_;
};

constexpr int32_t kBig = 2'000'000'000;

// Optimizes at the first flush, on the calling thread.
std::unique_ptr<Pair> warm_pair() {
  auto p = std::make_unique<Pair>(
      std::initializer_list<std::pair<const char*, const char*>>{{"policy", "always"},
                                                                 {"workers", "0"},
                                                                 {"interval", "1"},
                                                                 {"exit_limit", "3"},
                                                                 {"exit_limit_loop", "3"}});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(p->twice(i, 1, 3), 3 + 2 * 3 * (i + 1));
  EXPECT_EQ(p->inlined(), 1u);
  return p;
}

TEST(DeoptInlined, the_host_finishes_the_callee_and_the_caller_goes_on_with_its_answer) {
  auto p = warm_pair();
  EXPECT_EQ(Pair::resumed, 0u);
  EXPECT_EQ(p->twice(kBig, kBig, 5), 5 + 2 * 5 * (2 * int64_t{kBig}));
  // The first exit continues in baseline code of the caller, whose second call reaches `add`
  // itself.
  EXPECT_EQ(Pair::resumed, 2u);
  MethodReport add = p->add();
  ASSERT_EQ(add.exits.size(), 1u);
  EXPECT_GE(add.exits[0].exits, 1u);
  EXPECT_EQ(p->twice(1, 2, 5), 5 + 2 * 5 * 3);
}

TEST(DeoptInlined, a_banned_guard_leaves_the_callers_too) {
  auto p = warm_pair();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(p->twice(kBig, i + kBig / 2, 1), 1 + 2 * (int64_t{kBig} + i + kBig / 2));
  }
  p->runtime->flush();
  ASSERT_EQ(p->add().exits.size(), 1u);
  EXPECT_TRUE(p->add().exits[0].banned);
  EXPECT_EQ(p->inlined(), 0u);
  uint64_t before = p->add().exits[0].exits;
  EXPECT_EQ(p->twice(kBig, kBig, 5), 5 + 2 * 5 * (2 * int64_t{kBig}));
  EXPECT_EQ(p->twice(1, 2, 5), 5 + 2 * 5 * 3);
  EXPECT_LE(p->add().exits[0].exits, before + 2);
}

}  // namespace
}  // namespace uptier::test::deopt_inlined_test
