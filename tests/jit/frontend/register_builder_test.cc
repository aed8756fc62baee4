// RegisterBuilder: blocks, liveness and types of a small register machine, and its code.
#include "uptier/register_builder.h"

#include <gtest/gtest.h>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/interpret.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"

namespace uptier::test::register_builder_test {
namespace {

// An int is an i32, a wide one is an i64; both together make a wide one.
struct Width {
  int bits = 0;

  Type form() const { return bits == 32 ? Type::kI32 : Type::kI64; }
  bool fits(Width w) const { return bits == w.bits; }
  Width join(Width w) const { return {std::max(bits, w.bits)}; }
  friend bool operator==(Width, Width) = default;
};

RegisterSet set_of(std::initializer_list<size_t> registers) {
  RegisterSet s;
  for (size_t r : registers) s.set(r);
  return s;
}

constexpr int64_t kLarge = int64_t{1} << 40;

// r0 is the parameter. r3 is written and never read.
const RegisterStep kSteps[] = {
    {{}, set_of({1})},                 // 0: r1 = 0
    {{}, set_of({2})},                 // 1: r2 = 0
    {set_of({0, 1}), {}, true, 6},     // 2: unless r1 < r0 goto 6
    {set_of({1, 2}), set_of({2, 3})},  // 3: guard r1 < 100; r2 = r3 = r2 + kLarge
    {set_of({1}), set_of({1})},        // 4: r1 = r1 + 1
    {{}, {}, false, 2},                // 5: goto 2
    {set_of({2}), {}, false},          // 6: return r2
};

class Sum : public RegisterBuilder<Width> {
 public:
  using RegisterBuilder::RegisterBuilder;

 private:
  void enter() override {
    set(0, {32}, b_.param(0));
    leading_ = {b_.param(0)};
    flow(0);
  }
  void instruction() override {
    switch (at_) {
      case 0: return set(1, {32}, b_.i32(0));
      case 1: return set(2, {32}, b_.i32(0));
      case 2: return flow_if(b_.binary(Opcode::kLtS, get(1), get(0)), 3, 6);
      case 3: {
        guard(b_.binary(Opcode::kLtS, get(1), b_.i32(100)), GuardReason::kUser);
        state_here();  // a frame state that is already there
        Value sum = convert(get(2), type(2), {64});
        set(2, {64}, b_.binary(Opcode::kAdd, sum, b_.i64(kLarge)));
        return set(3, {64}, get(2));
      }
      case 4: return set(1, {32}, b_.binary(Opcode::kAdd, get(1), b_.i32(1)));
      case 5: return flow(2);
      default: b_.ret(get(2)); alive_ = false;
    }
  }
  Value convert(Value v, Width from, Width to) override {
    return from == to ? v : b_.convert(Opcode::kExtendS, Type::kI64, v);
  }
};

TEST(RegisterCode, finds_blocks_loops_and_what_is_live) {
  RegisterCode code(kSteps);
  EXPECT_EQ(code.size(), 7u);
  EXPECT_EQ(code.leaders, std::vector<bool>({true, false, true, true, false, false, true, true}));
  EXPECT_EQ(code.loop_ends, (std::map<uint32_t, uint32_t>{{2, 6}}));
  EXPECT_EQ(code.live[0], set_of({0}));
  EXPECT_EQ(code.live[2], set_of({0, 1, 2}));
  EXPECT_EQ(code.live[6], set_of({2}));
}

// ---- Errors
// --------------------------------------------------------------------------------------

// A description with a chosen register and a chosen jump target, which may be out of range.
class Wrong : public RegisterBuilder<Width> {
 public:
  Wrong(const RegisterCode& code, RegisterTypes<Width>& types, FunctionBuilder& b, size_t registers,
        int reg, uint32_t to)
      : RegisterBuilder(code, types, b, registers, true), reg_(reg), to_(to) {}

 private:
  void enter() override {
    set(reg_, {32}, b_.param(0));
    if (live(reg_, 0)) set(reg_, {32}, get(reg_));
    flow(0);
  }
  void instruction() override { flow(to_); }
  Value convert(Value v, Width, Width) override { return v; }
  int reg_;
  uint32_t to_;
};

// Returns the error of a function whose only jump goes to step `to`.
std::string refusal(size_t registers, int reg, uint32_t to) {
  const RegisterStep steps[] = {{set_of({0}), {}, false, to}, {{}, {}, false}};
  RegisterCode code(steps);
  RegisterTypes<Width> types;
  Signature s{{Type::kI32}, Type::kI64};
  int walks = 0;
  infer_types(code, types, s, [&](FunctionBuilder& b) {
    EXPECT_LT(++walks, 10);
    return Wrong(code, types, b, registers, reg, to).walk();
  });
  FunctionBuilder b(s, "f");
  EXPECT_FALSE(Wrong(code, types, b, registers, reg, to).walk());
  std::string why = b.status().ok() ? "" : b.status().error().message;
  return why.substr(why.rfind(": ") + 2);
}

TEST(RegisterBuilder, what_is_no_register_and_no_place_is_refused) {
  EXPECT_EQ(refusal(257, 0, 1), "257 registers; 256 at most");
  EXPECT_EQ(refusal(size_t{1} << 40, 0, 1), "1099511627776 registers; 256 at most");
  EXPECT_EQ(refusal(256, 256, 1), "there is no register 256 among 256");
  EXPECT_EQ(refusal(4, 4, 1), "there is no register 4 among 4");
  EXPECT_EQ(refusal(4, -1, 1), "there is no register -1 among 4");
  EXPECT_EQ(refusal(4, 100'000, 1), "there is no register 100000 among 4");
  EXPECT_EQ(refusal(4, 0, 3), "instruction 0 jumps out of the code");
}

TEST(RegisterBuilder, types_go_around_loops_and_frames_name_what_is_live) {
  RegisterCode code(kSteps);
  RegisterTypes<Width> types;
  Signature s{{Type::kI32}, Type::kI64};
  int walks = 0;
  infer_types(code, types, s, [&](FunctionBuilder& b) {
    ++walks;
    return Sum(code, types, b, 4, true).walk();
  });
  EXPECT_GE(walks, 3) << "one to begin with, one for the wide sum, one that changes nothing";
  EXPECT_EQ(types.at[2][1].bits, 32);
  EXPECT_EQ(types.at[2][2].bits, 64);
  ASSERT_EQ(types.loops.size(), 1u);
  EXPECT_EQ(types.loops[0].place, 2u);
  using Slots = std::vector<std::pair<uint8_t, Width>>;
  EXPECT_EQ(types.loops[0].registers, (Slots{{0, {32}}, {1, {32}}, {2, {64}}}));
  ASSERT_EQ(types.guards.size(), 1u);
  EXPECT_EQ(types.guards[0].place, 3u);
  EXPECT_EQ(types.guards[0].registers, types.loops[0].registers);

  for (int build = 0; build < 2; ++build) {  // both builds are the same
    FunctionBuilder b(s, "sum");
    EXPECT_FALSE(Sum(code, types, b, 4, false).walk());
    EXPECT_EQ(types.guards.size(), 1u);
    jit::Module m;
    m.functions.push_back(BuilderAccess::finish(b));
    Status valid = jit::verify(m);
    ASSERT_TRUE(valid.ok()) << valid.error().message << "\n" << jit::to_text(m);
    jit::Interpreter i(m);
    for (uint64_t n : {0, 1, 5}) {
      const uint64_t args[] = {n};
      EXPECT_EQ(i.run(MethodId(0), args).bits, n * kLarge) << jit::to_text(m);
    }
  }
}

}  // namespace
}  // namespace uptier::test::register_builder_test
