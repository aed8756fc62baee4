// Interval: what an integer value can be, as a signed and as an unsigned number.
//
//     load8_u          [0, 255]                  both
//     x + 1            [1, 256]                  where x is the above
//     select(c, -1, 1) signed [-1, 1], unsigned [1, 2^w - 1]
//
// An interval holds every value that can be there, and maybe more. The two readings are kept apart,
// because each is narrow where the other is not, and each narrows the other where neither crosses
// its border. i32 is read in 32 bits.
//
//   Thread: any. Cost: constant. Errors: none; what is not known is the full interval.
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
  // Returns whether the bits, zero-extended as in semantics.h, may be there.
  bool holds(Type t, uint64_t bits) const;

  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval full_interval(Type t);
Interval interval_of(Type t, uint64_t bits);
// The values from `min` to `max`, as signed or unsigned numbers; clipped to the type.
Interval signed_interval(Type t, int64_t min, int64_t max);
Interval unsigned_interval(Type t, uint64_t min, uint64_t max);

// What is in either, and in both; none where nothing is.
Interval join(const Interval& a, const Interval& b);
std::optional<Interval> meet(Type t, const Interval& a, const Interval& b);

// What an operation leaves of operands in the intervals, when it does not trap. `source` is the
// type of the first operand. Holds all that evaluate() can give for them.
Interval interval_of(Opcode op, Type type, Type source, std::span<const Interval> operands);

// Whether a comparison or an overflow test of such operands is always 1, or always 0.
std::optional<bool> decide(Opcode op, const Interval& a, const Interval& b, Type type);

// What is left of `a` where `a op b` holds, or does not; none where that cannot be. `op` is one of
// kEq to kGeU. The other operand is asked for with the mirrored comparison.
std::optional<Interval> where(Opcode op, bool holds, Type type, const Interval& a,
                              const Interval& b);
Opcode mirrored(Opcode comparison);

}  // namespace uptier::jit
