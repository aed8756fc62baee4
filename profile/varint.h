// varint.h: numbers as 7 bits a byte, the low ones first, the top bit set in all bytes but the
// last.
//
// Most counts take one byte, so runs of such bytes are read eight at a time.
#pragma once

#include <optional>
#include <span>

#include "profile/bytes.h"

namespace uptier::profile {

inline constexpr uint64_t kMoreBytes = 0x80;

inline void append_varint(uint64_t number, Bytes& out) {
  for (; number >= kMoreBytes; number >>= 7) {
    out.push_back(static_cast<std::byte>(number | kMoreBytes));
  }
  out.push_back(static_cast<std::byte>(number));
}

void append_varints(std::span<const uint64_t> numbers, Bytes& out);

// What a list of numbers took, and a number that none of them exceeds.
struct Varints {
  size_t bytes = 0;
  uint64_t bound = 0;
};

// Reads as many numbers as `numbers` has room for; nothing if one does not end within `bytes`, or
// does not fit into 64 bits.
std::optional<Varints> take_varints(ByteSpan bytes, std::span<uint64_t> numbers);

// Reads numbers and fixed fields one by one. Failed from the first that is not there, and yields
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
    const Taken taken = failed_ ? Taken{} : take_slow(bytes_, at_);
    failed_ |= taken.behind == 0;
    at_ = failed_ ? at_ : taken.behind;
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
  struct Taken {
    uint64_t number = 0;
    size_t behind = 0;  // its last byte; 0 if it does not end, or not fit
  };
  static Taken take_slow(ByteSpan bytes, size_t at);

  ByteSpan bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace uptier::profile
