// Cursor: reads numbers and text from a part of a section.
//
// Law: nothing outside of the part is read. A value that goes past its end makes the cursor bad, for
// good, and is 0 or empty. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace uptier::dwarf {

class Cursor {
 public:
  Cursor() = default;
  // Reads [at, end) of `section`; what of it lies outside of the section does not exist.
  Cursor(std::span<const uint8_t> section, uint64_t at, uint64_t end = UINT64_MAX)
      : bytes_(section.data()), end_(end < section.size() ? end : section.size()), at_(at) {
    if (at_ > end_) stop();
  }

  uint64_t at() const { return at_; }
  uint64_t left() const { return end_ - at_; }
  bool bad() const { return bad_; }
  bool done() const { return at_ >= end_; }

  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  // Reads a number of `width` bytes, 1 to 8.
  uint64_t number(unsigned width) {
    if (left() < width) return stop();
    uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) value |= uint64_t{bytes_[at_ + i]} << (8 * i);
    at_ += width;
    return value;
  }
  uint64_t uleb() {
    unsigned shift = 0;
    return leb(shift);
  }
  int64_t sleb() {
    unsigned shift = 0;
    uint64_t value = leb(shift);
    const bool negative = shift < 64 && shift != 0 && (value >> (shift - 1) & 1) != 0;
    if (negative) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  // Reads text up to its zero byte.
  std::string_view text() {
    const uint8_t* begin = bytes_ + at_;
    const void* zero = done() ? nullptr : std::memchr(begin, 0, left());
    if (zero == nullptr) return stop(), std::string_view();
    const auto size = static_cast<size_t>(static_cast<const uint8_t*>(zero) - begin);
    at_ += size + 1;
    return {reinterpret_cast<const char*>(begin), size};
  }
  void skip(uint64_t count) {
    if (count > left()) {
      stop();
    } else {
      at_ += count;
    }
  }
  uint64_t stop() {
    bad_ = true;
    at_ = end_;
    return 0;
  }

 private:
  // Numbers have ten bytes at most; `shift` becomes the number of bits read.
  uint64_t leb(unsigned& shift) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && at_ < end_; ++i) {
      const uint8_t byte = bytes_[at_++];
      value |= shift < 64 ? uint64_t{byte & 0x7fu} << shift : 0;
      shift += 7;
      if ((byte & 0x80) == 0) return value;
    }
    return stop();
  }

  const uint8_t* bytes_ = nullptr;
  uint64_t end_ = 0;
  uint64_t at_ = 0;
  bool bad_ = false;
};

}  // namespace uptier::dwarf
