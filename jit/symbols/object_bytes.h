// ObjectBytes: the bytes of a section of an object file, while it is written.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace uptier::jit {

class ObjectBytes {
 public:
  template <class T>
  void put(const T& value) {
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  void put(std::initializer_list<uint8_t> list) { bytes_.insert(bytes_.end(), list); }
  void text(std::string_view s) {
    bytes_.insert(bytes_.end(), s.begin(), s.end());
    bytes_.push_back(0);
  }
  void uleb(uint64_t n) {
    for (; n >= 0x80; n >>= 7) bytes_.push_back(static_cast<uint8_t>(n | 0x80));
    bytes_.push_back(static_cast<uint8_t>(n));
  }
  void sleb(int64_t n) {
    for (; n < -0x40 || n >= 0x40; n >>= 7) bytes_.push_back(static_cast<uint8_t>(n | 0x80));
    bytes_.push_back(static_cast<uint8_t>(n & 0x7f));
  }
  void align(size_t to, uint8_t with) {
    while (bytes_.size() % to != 0) bytes_.push_back(with);
  }
  void patch32(size_t at, uint32_t value) { std::memcpy(&bytes_[at], &value, sizeof value); }
  size_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& all() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace uptier::jit
