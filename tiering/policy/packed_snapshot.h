// The packed form of the inputs of decisions: a mask of the fields that differ from those of another
// snapshot, which the reader has as well, and their values.
//
// A flag is all in the mask. Other values take 7 bits per byte (varint.h); a double is stored with
// its bytes in reverse order, so that round numbers are short. Values come back bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "profile/base/varint.h"
#include "tiering/policy/snapshot_fields.h"

namespace uptier::tiering {

template <typename T>
constexpr uint64_t to_bits(const T& v) {
  if constexpr (std::is_same_v<T, double>) {
    return __builtin_bswap64(std::bit_cast<uint64_t>(v));
  } else if constexpr (std::is_same_v<T, LoopId>) {
    return v.valid() ? v.index() + uint64_t{1} : 0;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63);
  } else {
    return static_cast<uint64_t>(v);
  }
}

template <typename T>
constexpr T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(__builtin_bswap64(bits));
  } else if constexpr (std::is_same_v<T, LoopId>) {
    return bits == 0 ? LoopId::none() : LoopId(static_cast<uint32_t>(bits - 1));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<int64_t>(bits >> 1 ^ (0 - (bits & 1)));
  } else {
    return static_cast<T>(bits);
  }
}

// Appends `s` as its difference from `before`.
template <typename S>
void pack(const S& s, const S& before, profile::Bytes& out) {
  static_assert(std::tuple_size_v<std::remove_const_t<decltype(kFields<S>)>> <= 64);
  uint64_t mask = 0;
  unsigned bit = 0;
  each_field<S>([&](const auto& f) {
    mask |= uint64_t{to_bits(s.*f.member) != to_bits(before.*f.member)} << bit++;
  });
  profile::append_varint(mask, out);
  each_field<S>([&](const auto& f) {
    const bool differs = (mask & 1) != 0;
    mask >>= 1;
    using T = std::remove_cvref_t<decltype(s.*f.member)>;
    if (differs && !std::is_same_v<T, bool>) profile::append_varint(to_bits(s.*f.member), out);
  });
}

// Changes `s` from what was `before` to what was packed.
template <typename S>
void unpack(profile::VarintReader& in, S& s) {
  uint64_t mask = in.number();
  each_field<S>([&](const auto& f) {
    const bool differs = (mask & 1) != 0;
    mask >>= 1;
    using T = std::remove_cvref_t<decltype(s.*f.member)>;
    if (!differs) return;
    if constexpr (std::is_same_v<T, bool>) {
      s.*f.member = !(s.*f.member);
    } else {
      s.*f.member = from_bits<T>(in.number());
    }
  });
}

}  // namespace uptier::tiering
