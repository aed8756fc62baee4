// Interval: the possible values of an integer, as a signed and as an unsigned number.
//
//     load8_u          [0, 255]                  both
//     x + 1            [1, 256]                  if x is the above
//     select(c, -1, 1) signed [-1, 1], unsigned [1, 2^w - 1]
//
// An interval contains every possible value, and perhaps more. The two readings are kept apart
// because each can be narrow where the other is not. Each narrows the other if neither crosses its
// border. i32 is read in 32 bits.
//
//   Thread: any. Cost: constant. Errors: none; an unknown value has the full interval.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "uptier/opcodes.h"

namespace uptier::jit {

struct Interval {
  int64_t min_s = INT64_MIN, max_s = INT64_MAX;
  uint64_t min_u = 0, max_u = UINT64_MAX;

  bool constant() const { return min_u == max_u; }
  bool non_negative() const { return min_s >= 0; }
  // Returns whether the bits, zero-extended as in semantics.h, are a possible value.
  bool holds(Type t, uint64_t bits) const;

  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval full_interval(Type t);
Interval interval_of(Type t, uint64_t bits);
// The values from `min` to `max`, as signed or unsigned numbers; clipped to the type.
Interval signed_interval(Type t, int64_t min, int64_t max);
Interval unsigned_interval(Type t, uint64_t min, uint64_t max);

// The values of either, and the values of both; none if there are none.
Interval join(const Interval& a, const Interval& b);
std::optional<Interval> meet(Type t, const Interval& a, const Interval& b);

// Returns the results of an operation on operands in the intervals, if it does not trap. `source`
// is the type of the first operand. Contains every result of evaluate() for such operands.
Interval interval_of(Opcode op, Type type, Type source, std::span<const Interval> operands);

// Returns whether a comparison or an overflow test of such operands is always 1, or always 0.
std::optional<bool> decide(Opcode op, const Interval& a, const Interval& b, Type type);

// Returns the values of `a` for which `a op b` holds, or does not hold; none if there are none.
// `op` is one of kEq to kGeU. To narrow the other operand, use the mirrored comparison.
std::optional<Interval> where(Opcode op, bool holds, Type type, const Interval& a,
                              const Interval& b);
Opcode mirrored(Opcode comparison);

}  // namespace uptier::jit
