// A host frame with many slots that a trap drops: no memory of it leaks.
#include <malloc.h>

#include <optional>

#include "jit/frontend/builder_access.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::deopt_large_frame_test {
namespace {

constexpr uint32_t kSlots = 4000;

std::string guarded() {
  std::string state;
  for (uint32_t i = 0; i < kSlots; ++i) state += std::string(i == 0 ? "" : ", ") + "v0";
  return "func @guarded(i32) -> i64 {\nb0(v0: i32):\n  frame_state pc=3 [" + state + "]\n" + R"(
  guard v0, overflow @9
  v1 = extend_s.i64 v0
  return v1
}
func @boom() -> i64 {
b0:
  trap unreachable
}
)";
}

// Resumes by calling a method that traps, as an interpreter that calls compiled code does.
class TrappingHost : public Host {
 public:
  explicit TrappingHost(Runtime& runtime) : module_(parse_or_die(guarded())) {
    for (uint32_t i = 0; i < 2; ++i) {
      const jit::Function& f = module_.functions[i];
      MethodInfo info{.key = {1, i}, .name = f.name, .signature = f.signature()};
      if (i == 0) info.host_resume = &TrappingHost::resume;
      Result<MethodId> m = runtime.add_method(*this, std::move(info));
      EXPECT_TRUE(m.ok());
      methods[i] = *m;
    }
    boom = reinterpret_cast<int64_t (*)()>(const_cast<void*>(runtime.entry_address(methods[1])));
  }
  Status build(MethodId m, FunctionBuilder& b) override {
    BuilderAccess::adopt(b, module_.functions[m == methods[0] ? 0 : 1]);
    return {};
  }
  static uint64_t resume(const HostFrame* f) {
    slots = f->slot_count;
    last = f->slots[f->slot_count - 1];
    return static_cast<uint64_t>(boom());
  }

  MethodId methods[2];
  inline static int64_t (*boom)() = nullptr;
  inline static uint64_t slots = 0, last = 1;

 private:
  jit::Module module_;
};

TEST(Deopt, a_large_frame_that_a_trap_drops_leaves_nothing_behind) {
  for (const char* tier : {"baseline", "optimized"}) {
    Options o;
    ASSERT_TRUE(o.set("tier", tier));
    Result<std::unique_ptr<Runtime>> r = Runtime::create(o);
    ASSERT_TRUE(r.ok());
    TrappingHost host(**r);
    std::optional<ThreadScope> thread(**r);
    auto run = [&] {
      uint64_t zero = 0;
      EXPECT_EQ((*r)->invoke(host.methods[0], {&zero, 1}).trap.code, TrapCode::kUnreachable);
    };
    run();
    EXPECT_EQ(TrappingHost::slots, kSlots);
    EXPECT_EQ(TrappingHost::last, 0u);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 100; ++i) run();
    EXPECT_LT(mallinfo2().uordblks, before + kSlots * 8) << tier;
    thread.reset();
    r->reset();
  }
}

}  // namespace
}  // namespace uptier::test::deopt_large_frame_test
