// value.h: what a calc variable holds: one 64-bit word.
//
//   0000 pppp pppp pppp   pointer to an Object (nil, false and true are objects, too)
//   0002 .... - FFFA ....  a double: its bits plus kDoubleOffset
//   FFFE 0000 iiii iiii   an int: 32 bits, signed
//
// Numbers are of one kind to a program: an int is a double that is small and whole, kept in a form
// that computes faster. Nothing that a program can print tells 3 from 3.0, so every tier is free to
// choose; a result that is no int (too large, a fraction, minus zero) becomes a double.
#pragma once

#include <bit>
#include <cstdint>

namespace calc {

using Val = uint64_t;

inline constexpr Val kDoubleOffset = Val{1} << 49;
inline constexpr Val kIntTag = Val{0xFFFE} << 48;

struct Shape;
struct Object {
  Shape* shape;  // kind, and of a record its fields; first in every object
};

inline bool is_int(Val v) { return v >= kIntTag; }
inline bool both_int(Val a, Val b) { return (a & b) >= kIntTag; }
inline bool is_object(Val v) { return v < kDoubleOffset; }
inline bool is_double(Val v) { return v - kDoubleOffset < kIntTag - kDoubleOffset; }
inline bool is_number(Val v) { return v >= kDoubleOffset; }

inline int32_t as_int(Val v) { return static_cast<int32_t>(v); }
inline double as_double(Val v) { return std::bit_cast<double>(v - kDoubleOffset); }
inline double number(Val v) { return is_int(v) ? as_int(v) : as_double(v); }
inline Object* as_object(Val v) { return reinterpret_cast<Object*>(v); }

inline Val of_int(int32_t i) { return kIntTag | static_cast<uint32_t>(i); }
inline Val of_double(double d) { return std::bit_cast<uint64_t>(d) + kDoubleOffset; }
inline Val of_object(const void* o) { return reinterpret_cast<uintptr_t>(o); }

}  // namespace calc
