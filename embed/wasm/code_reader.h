// code_reader.h: walks the instructions of a function body.
//
// Law: nothing outside of the body is read, whatever it says: a number or an instruction that goes
// past its end, or that has no row in opcodes.h, makes the reader bad, for good. What a body means
// is checked by who validates it (body_checker.h), with this reader beside the library's, so that
// both have taken the same bytes for the same instructions. Offsets are of the module's bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "embed/wasm/module_info.h"
#include "embed/wasm/opcodes.h"

namespace uptier::wasm {

// Where a memory instruction goes, beside its index operand.
struct MemArg {
  uint32_t align = 0;  // log2; a hint without effect
  uint32_t offset = 0;
};

// The parameters and results of a block; views into the module's types or into one static type each.
struct BlockType {
  std::span<const Type> params;
  std::span<const Type> results;
};

// Some locals of one type; kNone for an unknown type.
struct LocalGroup {
  uint32_t count = 0;
  Type type = Type::kNone;
};

class CodeReader {
 public:
  CodeReader() = default;
  // Reads [begin, end) of the module's bytes, as much of that as there is.
  CodeReader(std::span<const uint8_t> module, uint64_t begin, uint64_t end);
  CodeReader(const ModuleInfo& info, const FunctionInfo& function)
      : CodeReader(info.bytes, function.body_begin, function.body_end) {}

  uint32_t offset() const { return at_; }
  // The end was reached, or nothing more can be read.
  bool done() const { return at_ >= end_; }
  // Returns whether something could not be read; the values read then are 0.
  bool bad() const { return bad_; }

  Op op() {
    const uint8_t code = byte();
    if (code != static_cast<uint8_t>(Op::kPrefix)) return static_cast<Op>(code);
    const uint32_t number = u32();
    if (number > 0xff) return Op::kNotServed;
    return static_cast<Op>(code << 8 | number);
  }
  uint8_t byte() {
    if (at_ >= end_) return stop();
    return bytes_[at_++];
  }
  // Most numbers are one byte long.
  uint32_t u32() {
    return at_ < end_ && bytes_[at_] < 0x80 ? bytes_[at_++] : static_cast<uint32_t>(leb());
  }
  int32_t s32() { return static_cast<int32_t>(signed_leb(5)); }
  int64_t s64() { return signed_leb(10); }
  uint32_t fixed32() { return fixed<uint32_t>(); }
  uint64_t fixed64() { return fixed<uint64_t>(); }
  MemArg mem_arg() {
    uint32_t align = u32();
    return {align, u32()};
  }
  BlockType block_type(std::span<const FuncType> types);
  LocalGroup local_group();

  // Moves past the immediates of an instruction.
  void skip(Immediates immediates);

 private:
  uint8_t stop() {
    bad_ = true;
    at_ = end_;
    return 0;
  }
  uint64_t leb();
  int64_t signed_leb(unsigned most_bytes);
  int64_t block_code();
  void skip_many(Immediates immediates);
  template <typename T>
  T fixed() {
    T v{};
    if (end_ - at_ < sizeof v) {
      stop();
      return v;
    }
    std::memcpy(&v, &bytes_[at_], sizeof v);
    at_ += sizeof v;
    return v;
  }

  const uint8_t* bytes_ = nullptr;
  uint32_t at_ = 0;
  uint32_t end_ = 0;
  bool bad_ = false;
};

// Returns the value type of a byte of the binary format.
Type value_type(uint8_t code);

}  // namespace uptier::wasm
