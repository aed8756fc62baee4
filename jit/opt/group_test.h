// GroupTest: one test before a group of iterations (rounds) of a counted loop, instead of tests in
// each.
//
//     i, i + s, ... i + (rounds - 1) s  are all below n, below len, and do not overflow
//       if  i < min(n, len, ...) - (rounds - 1) s      computed once, in front of the loop
//
// Each iteration tests the condition of the loop itself. It may also have guards and traps that
// compare the variable with a loop-invariant value, or check whether its next value overflows.
// After the group's test they would all pass, so they are left out.
//
//   up, lt_s le_s       guards are covered as well; i >= 0 is tested in front if they need it
//   up, lt_u le_u ne    unsigned comparisons are covered as well
//   down, gt_s ...      covers only the test of the loop
//
// Three cases are excluded by tests in front: a limit that would wrap around, a step that is not
// positive (if it is not a constant), and a sequence that would miss its limit (ne). If such a test
// fails, no group runs.
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
  // `blocks`: of the loop. Keeps references to all arguments.
  GroupTest(const Function& f, const LoopNest& n, uint32_t loop, std::span<const Block> blocks,
            const CountedLoop& counted, uint64_t rounds);

  // Returns whether the loop has a group test.
  bool exists() const { return exists_; }
  // Returns the guards and traps that the test makes unnecessary, in no order.
  const std::vector<InstId>& answered() const { return answered_; }
  // Returns whether i + s, ... of a group neither wrap around nor become negative, so that
  // zero-extending such a sum equals adding to the zero-extended variable.
  bool sums_extend() const {
    return exists_ && counted_.constant_step && up_ && (from_zero_ || !signed_);
  }

  // Emits the computation of the limit. Call it once, before the functions below.
  void emit_limit(LoopPreheader& e);
  // Emits the test whether the first group may be entered, given the variable's first value.
  Value emit_enters(LoopPreheader& e, Value first);
  // The test at the start of each group: op(variable, limit()).
  Opcode op() const { return op_; }
  Value limit() const { return limit_; }

 private:
  // A guard's condition: variable + plus < length, or variable + plus does not overflow.
  struct Bound {
    Value length;  // none: a test for overflow
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
  Opcode op_ = Opcode::kLtS;  // a strict comparison
  bool exists_ = false, up_ = true, signed_ = true, inclusive_ = false, from_zero_ = false;
  uint64_t distance_ = 0;  // from the first value of a group to the last, if the step is a constant
  std::vector<Bound> bounds_;
  std::vector<InstId> answered_;
  Value limit_, enters_;
};

}  // namespace uptier::jit
