// value.h: what a calc variable holds: one 64-bit word.
//
//   0000 .... - FFF8 ....  a double: its bits
//   FFFA pppp pppp pppp    pointer to an Object
//   FFFC 0000 0000 000n    nil, false, true
//   FFFE 0000 iiii iiii    an int: 32 bits, signed
//
// Numbers are of one kind to a program: an int is a double that is small and whole, kept in a form
// that computes faster. Nothing that a program can print tells 3 from 3.0, so every tier is free to
// choose; a result that is no int (too large, a fraction, minus zero) becomes a double. The machine
// makes no other NaN than FFF8 0..., and 7FF8 0... of that.
#pragma once

#include <bit>
#include <cstdint>

namespace calc {

using Val = uint64_t;

inline constexpr Val kObjectTag = Val{0xFFFA} << 48;
inline constexpr Val kNilVal = Val{0xFFFC} << 48, kFalseVal = kNilVal + 1, kTrueVal = kNilVal + 2;
inline constexpr Val kIntTag = Val{0xFFFE} << 48;

inline bool is_int(Val v) { return v >= kIntTag; }
inline bool both_int(Val a, Val b) { return (a & b) >= kIntTag; }
inline bool is_double(Val v) { return v < kObjectTag; }
inline bool is_number(Val v) { return is_double(v) || is_int(v); }
inline bool is_object(Val v) { return v >> 48 == kObjectTag >> 48; }
inline bool truthy(Val v) { return v - kNilVal > 1; }

inline int32_t as_int(Val v) { return static_cast<int32_t>(v); }
inline double as_double(Val v) { return std::bit_cast<double>(v); }
inline double number(Val v) { return is_int(v) ? as_int(v) : as_double(v); }

inline Val of_int(int32_t i) { return kIntTag | static_cast<uint32_t>(i); }
inline Val of_double(double d) { return std::bit_cast<Val>(d); }
inline Val of_bool(bool b) { return kFalseVal + (b ? 1 : 0); }
inline Val of_object(const void* o) { return kObjectTag | reinterpret_cast<uintptr_t>(o); }

}  // namespace calc
