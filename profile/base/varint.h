// varint.h: numbers as 7 bits per byte, the low ones first; the top bit is set in all bytes except
// the last.
//
// Most counts take one byte, so runs of such bytes are read eight at a time.
#pragma once

#include <bit>
#include <optional>
#include <span>

#include "profile/base/bytes.h"

namespace uptier::profile {

inline constexpr uint64_t kMoreBytes = 0x80;
inline constexpr uint64_t kAllMoreBytes = 0x8080808080808080;  // of eight bytes

// A number and its length in bytes; 0 bytes if there is none.
struct Varint {
  uint64_t number = 0;
  size_t bytes = 0;
};

// Reads the number at the front of eight bytes, if it ends there: the groups of seven bits are
// merged in pairs, then in pairs of pairs.
inline Varint take_short(uint64_t eight) {
  const uint64_t ends = ~eight & kAllMoreBytes;
  if (ends == 0) return {};
  uint64_t n = eight & (ends ^ (ends - 1)) & ~kAllMoreBytes;
  n = (n & 0x007f007f007f007f) | (n & 0x7f007f007f007f00) >> 1;
  n = (n & 0x00003fff00003fff) | (n & 0x3fff00003fff0000) >> 2;
  n = (n & 0x000000000fffffff) | (n & 0x0fffffff00000000) >> 4;
  return {n, static_cast<size_t>(std::countr_zero(ends)) / 8 + 1};
}

inline void append_varint(uint64_t number, Bytes& out) {
  for (; number >= kMoreBytes; number >>= 7) {
    out.push_back(static_cast<std::byte>(number | kMoreBytes));
  }
  out.push_back(static_cast<std::byte>(number));
}

void append_varints(std::span<const uint64_t> numbers, Bytes& out);

// The length of a list of numbers, and an upper bound of all of them.
struct Varints {
  size_t bytes = 0;
  uint64_t bound = 0;
};

// Reads as many numbers as `numbers` has room for; nothing if one does not end within `bytes`, or
// does not fit into 64 bits.
std::optional<Varints> take_varints(ByteSpan bytes, std::span<uint64_t> numbers);

// Reads numbers and fixed fields one by one. Fails at the first one that is missing, and yields
// zeros from then on.
class VarintReader {
 public:
  explicit VarintReader(ByteSpan bytes) : bytes_(bytes) {}

  uint64_t number() {
    if (at_ < bytes_.size()) {
      const auto byte = static_cast<uint64_t>(bytes_[at_]);
      if (byte < kMoreBytes) {
        ++at_;
        return byte;
      }
    }
    // By value, so that the reader may live in registers.
    const bool room = bytes_.size() - at_ >= sizeof(uint64_t);
    Varint taken = room ? take_short(load<uint64_t>(bytes_, at_)) : Varint{};
    if (taken.bytes == 0) taken = take_slow(bytes_, at_);
    failed_ |= taken.bytes == 0;
    if (failed_) return 0;
    at_ += taken.bytes;
    return taken.number;
  }
  // A number of 32 bits.
  uint32_t small() {
    const uint64_t n = number();
    failed_ |= n > UINT32_MAX;
    return failed_ ? 0 : static_cast<uint32_t>(n);
  }
  uint64_t fixed() {
    const ByteSpan eight = take(sizeof(uint64_t));
    return eight.empty() ? 0 : load<uint64_t>(eight, 0);
  }
  ByteSpan take(uint64_t size) {
    if (failed_ || size > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  bool ok() const { return !failed_; }
  size_t at() const { return at_; }
  ByteSpan rest() const { return bytes_.subspan(at_); }

 private:
  static Varint take_slow(ByteSpan bytes, size_t at);

  ByteSpan bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace uptier::profile
