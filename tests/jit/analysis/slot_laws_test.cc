// Frames of an interpreter that do not match the description of their loop are refused, with a
// message that names the slot.
#include "jit/analysis/slot_laws.h"

#include <optional>

#include "tests/support/runtime_host.h"

namespace uptier::test::slot_laws_test {
namespace {

// The interpreter's values in slots that the description derives from other values. The defaults
// match the description.
struct Lies {
  uint64_t factor = 5;
  uint64_t start = 0;  // added to n
  uint64_t twin = 0;   // added to one of two slots that are described as the same value
};

// sum(n, step): slots i, total, factor (the constant 5), start (argument 0), and two that hold 3 *
// step. The interpreter uses the values in its own slots.
struct Interpreted {
  Runtime* runtime = nullptr;
  MethodId method;
  Lies lies;
  uint64_t entered = 0;
};
Interpreted* interpreted = nullptr;

uint64_t round_of(const uint64_t* s) { return s[0] * s[2] + s[3] + (s[4] ^ s[5]); }

extern "C" uint64_t interpret_slots(uint64_t n, uint64_t step) {
  Interpreted& self = *interpreted;
  uint64_t s[6] = {
      0, 0, self.lies.factor, n + self.lies.start, 3 * step, 3 * step + self.lies.twin};
  int32_t* countdown = self.runtime->loop_countdown(self.method);
  for (; s[0] < n; ++s[0]) {
    if (--*countdown <= 0) {
      auto o = self.runtime->osr_enter(self.method, LoopId(0), {{n, step}}, s);
      self.entered += o.has_value();
      if (o) return o->bits;
    }
    s[1] += round_of(s);
  }
  return s[1];
}

// With `own`, the slots have independent values, so the interpreter may put anything in them.
void describe(FunctionBuilder& b, bool own) {
  Variable v[6];
  for (Variable& one : v) one = b.declare(Type::kI64);
  b.def(v[0], b.i64(0));
  b.def(v[1], b.i64(0));
  b.def(v[2], b.i64(5));
  b.def(v[3], b.param(0));
  b.def(v[4], b.binary(Opcode::kMul, b.param(1), b.i64(3)));
  b.def(v[5], b.use(v[4]));
  Block head = b.create_block(), body = b.create_block(), done = b.create_block();
  if (own) b.make_own(v);
  b.jump(head);
  b.switch_to(head);
  b.loop_header(1, v);
  b.branch(b.binary(Opcode::kLtU, b.use(v[0]), b.param(0)), body, done);
  b.switch_to(body);
  Value product = b.binary(Opcode::kMul, b.use(v[0]), b.use(v[2]));
  Value unlike = b.binary(Opcode::kXor, b.use(v[4]), b.use(v[5]));
  Value round = b.binary(Opcode::kAdd, b.binary(Opcode::kAdd, product, b.use(v[3])), unlike);
  b.def(v[1], b.binary(Opcode::kAdd, b.use(v[1]), round));
  b.def(v[0], b.binary(Opcode::kAdd, b.use(v[0]), b.i64(1)));
  b.jump(head);
  for (Block block : {head, body, done}) b.seal(block);
  b.switch_to(done);
  b.ret(b.use(v[1]));
}

class SlotLaws : public testing::Test {
 protected:
  struct Slots : Host {
    Status build(MethodId, FunctionBuilder& b) override {
      describe(b, own);
      return {};
    }
    bool own = false;
  };
  void SetUp() override {
    auto r = Runtime::create(options({{"workers", "0"}, {"measure_rates", "off"}}));
    ASSERT_TRUE(r.ok()) << r.error().message;
    runtime_ = std::move(*r);
    MethodInfo info{.key = {1, 1},
                    .name = "sum",
                    .signature = {{Type::kI64, Type::kI64}, Type::kI64},
                    .host_entry = (const void*)interpret_slots};
    Result<MethodId> m = runtime_->add_method(host_, info);
    ASSERT_TRUE(m.ok()) << m.error().message;
    state_.runtime = runtime_.get();
    state_.method = *m;
    interpreted = &state_;
    scope_.emplace(*runtime_);
  }
  // Returns the result of the interpreter alone.
  static uint64_t expected(uint64_t n, uint64_t step, const Lies& lies) {
    uint64_t s[6] = {0, 0, lies.factor, n + lies.start, 3 * step, 3 * step + lies.twin};
    for (; s[0] < n; ++s[0]) s[1] += round_of(s);
    return s[1];
  }
  void expect_refused(const Lies& lies, const std::string& slot_and_law) {
    state_.lies = lies;
    EXPECT_EQ(runtime_->invoke(state_.method, {{kRounds, 7}}).bits, expected(kRounds, 7, lies));
    EXPECT_EQ(state_.entered, 0u);
    EXPECT_EQ(last_error(),
              "osr_enter: sum: slot " + slot_and_law + ", which it is not in the frame");
  }
  std::string last_error() const { return runtime_->report().methods.at(0).last_error; }

  static constexpr uint64_t kRounds = 100'000;
  Slots host_;
  Interpreted state_;
  std::unique_ptr<Runtime> runtime_;
  std::optional<ThreadScope> scope_;
};

TEST_F(SlotLaws, frame_as_described_is_entered) {
  EXPECT_EQ(runtime_->invoke(state_.method, {{kRounds, 7}}).bits, expected(kRounds, 7, {}));
  EXPECT_EQ(state_.entered, 1u);
  EXPECT_EQ(last_error(), "");
}

TEST_F(SlotLaws, constant_that_is_none_in_the_frame_keeps_the_loop_interpreted) {
  expect_refused({.factor = 6}, "2 of loop 0 was described as the constant 0x5");
}

TEST_F(SlotLaws, argument_that_was_assigned_keeps_the_loop_interpreted) {
  expect_refused({.start = 1}, "3 of loop 0 was described as argument 0");
}

TEST_F(SlotLaws, values_that_are_not_the_same_any_more_keep_the_loop_interpreted) {
  expect_refused({.twin = 1}, "5 of loop 0 was described as the value of slot 4");
}

TEST_F(SlotLaws, refusal_is_of_the_frame_and_not_of_the_loop) {
  expect_refused({.twin = 1}, "5 of loop 0 was described as the value of slot 4");
  // The same code accepts a frame that matches. Few calls, so that they stay in the interpreter.
  state_.lies = {};
  EXPECT_EQ(runtime_->invoke(state_.method, {{kRounds, 9}}).bits, expected(kRounds, 9, {}));
  EXPECT_EQ(state_.entered, 1u);
}

TEST_F(SlotLaws, slots_with_values_of_their_own_are_what_the_frame_says) {
  host_.own = true;
  state_.lies = {.factor = 6, .start = 1, .twin = 1};
  EXPECT_EQ(runtime_->invoke(state_.method, {{kRounds, 7}}).bits,
            expected(kRounds, 7, state_.lies));
  EXPECT_EQ(state_.entered, 1u);
  EXPECT_EQ(last_error(), "");
}

TEST(SlotLawsOf, narrow_slots_are_compared_by_their_width) {
  using jit::SlotLaw;
  const SlotLaw laws[] = {{SlotLaw::Kind::kConstant, Type::kI32, 0, 5},
                          {SlotLaw::Kind::kArgument, Type::kF64, 1, 1},
                          {SlotLaw::Kind::kSlot, Type::kF32, 2, 0}};
  const uint64_t args[] = {0, uint64_t{1} << 40};
  uint64_t frame[] = {(uint64_t{7} << 32) | 5, uint64_t{1} << 40, 5};
  EXPECT_EQ(jit::broken_law(laws, args, frame), nullptr);
  frame[1] = 0;
  EXPECT_EQ(jit::broken_law(laws, args, frame), &laws[1]);
  frame[0] = 4;
  EXPECT_EQ(jit::broken_law(laws, args, frame), &laws[0]);
  EXPECT_EQ(jit::law_text(laws[0]), "the constant 0x5");
}

}  // namespace
}  // namespace uptier::test::slot_laws_test
