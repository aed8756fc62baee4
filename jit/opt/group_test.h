// GroupTest: one test before a group of rounds of a counted loop, in place of the tests in each round.
//
//     i, i + s, ... i + (rounds - 1) s  all below n, len and what may overflow
//       if  i < min(n, len, ...) - (rounds - 1) s      computed once, in front of the loop
//
// Each round tests the condition of the loop itself. It may have guards and traps that compare the
// variable with a value that does not change, or check whether its next value overflows. They need not be
// executed in each round: after the group's test they would pass.
//
//   up, lt_s le_s       guards are answered as well; i >= 0 is tested in front where they need it
//   up, lt_u le_u ne    so are unsigned comparisons
//   down, gt_s ...      the test of the loop alone
//
// Three things are tested in front: a limit that would wrap around, a step that is not positive (if it is
// no constant), and a walk that would miss its limit (ne). If a test fails, no group runs.
//
//   Thread: none of its own. Cost: the size of the loop.
#pragma once

#include <span>
#include <vector>

#include "jit/analysis/counted_loop.h"
#include "jit/opt/loop_preheader.h"

namespace uptier::jit {

class GroupTest {
 public:
  // `blocks`: of the loop. Refers to all it is given.
  GroupTest(const Function& f, const LoopNest& n, uint32_t loop, std::span<const Block> blocks,
            const CountedLoop& counted, uint64_t rounds);

  // Returns whether there is such a question.
  bool exists() const { return exists_; }
  // The guards and traps that it answers, in no order.
  const std::vector<InstId>& answered() const { return answered_; }
  // Returns whether i + s, ... of a group neither wrap around nor become negative, so that the sums are
  // those of the values extended with zeros.
  bool sums_extend() const {
    return exists_ && counted_.constant_step && up_ && (from_zero_ || !signed_);
  }

  // Computes the limit. Call once, before the others.
  void emit_limit(LoopPreheader& e);
  // Returns whether the first group may be entered, from the variable's first value.
  Value emit_enters(LoopPreheader& e, Value first);
  // The question for what a group begins with: op(variable, limit()).
  Opcode op() const { return op_; }
  Value limit() const { return limit_; }

 private:
  // variable + plus < length, or variable + plus overflows, in a guard.
  struct Bound {
    Value length;  // none: of what overflows
    uint64_t plus = 0;
    bool is_signed = true;

    friend bool operator==(const Bound&, const Bound&) = default;
  };

  bool find_direction();
  void find_bounds(std::span<const Block> blocks);
  bool extends_variable(const Inst& i) const;
  std::optional<Bound> bound_of(const Inst& i) const;
  std::optional<Bound> bound_of_length(Value x, Value length, bool is_signed) const;
  std::optional<Bound> bound_of_overflow(Value overflows) const;
  std::optional<uint64_t> distance_from_variable(Value v) const;
  void also(LoopPreheader& e, Value condition);
  Value value(LoopPreheader& e, Value v) const;
  Value lower(LoopPreheader& e, Value a, Value b) const;
  Value emit_bound(LoopPreheader& e, const Bound& b);
  Value overflow_bound(LoopPreheader& e, Value step) const;
  uint64_t greatest() const;
  uint64_t least() const;

  const Function& f_;
  const LoopNest& loops_;
  const uint32_t loop_;
  const CountedLoop counted_;
  const uint64_t rounds_;
  const Type type_;
  Opcode op_ = Opcode::kLtS;  // a strict order
  bool exists_ = false, up_ = true, signed_ = true, inclusive_ = false, from_zero_ = false;
  uint64_t distance_ = 0;  // from the first value of a group to the last, if the step is a constant
  std::vector<Bound> bounds_;
  std::vector<InstId> answered_;
  Value limit_, enters_;
};

}  // namespace uptier::jit
