// protobuf.h: writes messages of Protocol Buffers, as far as profiles need them.
//
// Law: a field is its tag (number << 3 | wire type) and its content; a varint has 7 bits per byte,
// the low ones first; content of variable size comes after its length. The number 0 and an empty
// text are not written, since a missing field has that meaning. Source:
// protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace uptier::profile {

class ProtoWriter {
 public:
  void number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    varint(out_, field << 3);
    varint(out_, value);
  }

  // Also for a nested message: the bytes of its writer. An empty one is written.
  void bytes(uint32_t field, std::string_view value) {
    varint(out_, field << 3 | 2);
    varint(out_, value.size());
    out_ += value;
  }

  // A repeated number, packed.
  void numbers(uint32_t field, std::span<const uint64_t> values) {
    std::string packed;
    for (const uint64_t v : values) varint(packed, v);
    if (!packed.empty()) bytes(field, packed);
  }

  const std::string& text() const { return out_; }

 private:
  static void varint(std::string& out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  }

  std::string out_;
};

}  // namespace uptier::profile
