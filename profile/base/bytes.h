// bytes.h: little-endian reading and writing of byte arrays, with every bound checked.
//
// A ByteReader that runs past its end, or reads padding that is not zero, has failed from then on
// and yields zeros; the caller checks once, at the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace uptier::profile {

static_assert(std::endian::native == std::endian::little, "formats are little-endian");

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

template <typename T>
T load(ByteSpan bytes, size_t offset) {
  static_assert(std::is_unsigned_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void store(std::span<std::byte> bytes, size_t offset, T value) {
  static_assert(std::is_unsigned_v<T>);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  void u32(uint32_t value) { raw(&value, sizeof value); }
  void u64(uint64_t value) { raw(&value, sizeof value); }

  // Writes a length and the bytes, then zeros up to a multiple of 8.
  void array(ByteSpan bytes) {
    u64(bytes.size());
    raw(bytes.data(), bytes.size());
    out_.resize(out_.size() + (-bytes.size() & 7));
  }
  void text(std::string_view text) { array(std::as_bytes(std::span(text))); }

 private:
  void raw(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), first, first + size);
  }

  Bytes& out_;
};

class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}

  uint32_t u32() { return fixed<uint32_t>(); }
  uint64_t u64() { return fixed<uint64_t>(); }

  ByteSpan array() {
    const uint64_t size = u64();
    const uint64_t padding = -size & 7;
    if (size > rest() || padding > rest() - size) failed_ = true;
    if (failed_) return {};
    const ByteSpan result = bytes_.subspan(at_, size);
    at_ += size;
    for (uint64_t i = 0; i < padding; ++i) failed_ |= bytes_[at_++] != std::byte{0};
    return result;
  }
  std::string text() {
    const ByteSpan chars = array();
    return std::string(reinterpret_cast<const char*>(chars.data()), chars.size());
  }
  Bytes copy() {
    const ByteSpan bytes = array();
    return Bytes(bytes.begin(), bytes.end());
  }

  // Returns whether all reads stayed in bounds and all padding was zero.
  bool ok() const { return !failed_; }
  size_t at() const { return at_; }
  size_t rest() const { return bytes_.size() - at_; }

 private:
  template <typename T>
  T fixed() {
    if (failed_ || rest() < sizeof(T)) {
      failed_ = true;
      return 0;
    }
    at_ += sizeof(T);
    return load<T>(bytes_, at_ - sizeof(T));
  }

  ByteSpan bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace uptier::profile
