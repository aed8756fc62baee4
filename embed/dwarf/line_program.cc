#include "embed/dwarf/line_program.h"

#include <algorithm>
#include <utility>

namespace uptier::dwarf {
namespace {

enum Standard : uint8_t {
  kExtended = 0,
  kCopy = 1,
  kAdvancePc = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kSetColumn = 5,
  kNegateStmt = 6,
  kConstAddPc = 8,
  kFixedAdvancePc = 9,
};
enum ExtendedOpcode : uint8_t { kEndSequence = 1, kSetAddress = 2, kSetDiscriminator = 4 };

class LineMachine {
 public:
  LineMachine(const LineHeader& h, const FileNumbers& files, const Sections& s, Rows& out,
              Budget& budget)
      : h_(h),
        files_(files),
        section_(s.line),
        code_end_(s.code_end),
        out_(out),
        budget_(budget),
        c_(s.line, h.program, h.end) {}

  Status run() {
    start();
    while (!c_.done()) {
      const uint64_t at = c_.at();
      if (!budget_.step()) return too_large();
      const uint8_t opcode = c_.u8();
      const bool fits = opcode >= h_.opcode_base ? special(opcode) : standard(opcode);
      if (!fits) return too_large();
      if (c_.bad()) {
        return broken(".debug_line", at, "an opcode goes past the end of its line program");
      }
    }
    drop();  // rows without an end belong to no code
    return {};
  }

 private:
  void start() {
    address_ = 0;
    file_ = 1;
    line_ = 1;
    column_ = 0;
    is_stmt_ = h_.default_is_stmt;
    discriminator_ = 0;
    first_ = out_.rows.size();
    good_ = true;
  }
  void drop() { out_.rows.resize(first_); }

  void advance(uint64_t operation) { address_ += operation * h_.min_length; }

  // Appends a row. Returns false if the budget is spent.
  bool emit() {
    const auto discriminator = static_cast<uint32_t>(std::exchange(discriminator_, 0));
    // Code is below 4 GiB; a sequence that goes elsewhere is dropped at its end.
    const bool sorted = out_.rows.size() == first_ || out_.rows.back().address <= address_;
    good_ = good_ && sorted && address_ != 0 && address_ < code_end_;
    if (!good_) return true;
    const Row row{static_cast<uint32_t>(address_),
                  files_.of(file_),
                  static_cast<uint32_t>(line_),
                  static_cast<uint16_t>(std::min<uint64_t>(column_, UINT16_MAX)),
                  is_stmt_,
                  discriminator};
    return budget_.push(out_.rows, row);
  }

  bool special(uint8_t opcode) {
    const unsigned adjusted = opcode - h_.opcode_base;
    advance(adjusted / h_.line_range);
    line_ += static_cast<uint64_t>(int64_t{h_.line_base} + adjusted % h_.line_range);
    return emit();
  }

  bool standard(uint8_t opcode) {
    switch (opcode) {
      case kExtended: return extended();
      case kCopy: return emit();
      case kAdvancePc: advance(c_.uleb()); return true;
      case kAdvanceLine: line_ += static_cast<uint64_t>(c_.sleb()); return true;
      case kSetFile: file_ = c_.uleb(); return true;
      case kSetColumn: column_ = c_.uleb(); return true;
      case kNegateStmt: is_stmt_ = !is_stmt_; return true;
      case kConstAddPc: advance((255u - h_.opcode_base) / h_.line_range); return true;
      case kFixedAdvancePc: address_ += c_.u16(); return true;
      default:
        for (unsigned left = h_.operands[opcode]; left > 0; --left) c_.uleb();
        return true;
    }
  }

  bool extended() {
    const uint64_t length = c_.uleb();
    if (length == 0 || length > c_.left()) return c_.stop(), true;
    const uint64_t end = c_.at() + length;
    const uint8_t opcode = c_.u8();
    bool fits = true;
    if (opcode == kSetAddress) {
      if (length < 2 || length > 9) return c_.stop(), true;
      address_ = c_.number(static_cast<unsigned>(length - 1));
      // The linker writes -1 for a removed function.
      if (length == 5 && address_ == UINT32_MAX) good_ = false;
    } else if (opcode == kEndSequence) {
      fits = end_sequence();
    } else if (opcode == kSetDiscriminator) {
      discriminator_ = c_.uleb();
    }
    c_ = Cursor(section_, end, h_.end);
    return fits;
  }

  bool end_sequence() {
    const size_t last = out_.rows.size();
    const bool ends =
        last > first_ && address_ <= code_end_ && out_.rows.back().address <= address_;
    if (good_ && ends && out_.rows[first_].address < address_) {
      const Sequence q{out_.rows[first_].address, static_cast<uint32_t>(address_),
                       static_cast<uint32_t>(first_), static_cast<uint32_t>(last)};
      if (!budget_.push(out_.sequences, q)) return false;
    } else {
      drop();
    }
    start();
    return true;
  }

  const LineHeader& h_;
  const FileNumbers& files_;
  const std::span<const uint8_t> section_;
  const uint64_t code_end_;
  Rows& out_;
  Budget& budget_;
  Cursor c_;
  uint64_t address_ = 0, file_ = 1, line_ = 1, column_ = 0, discriminator_ = 0;
  bool is_stmt_ = true;
  bool good_ = true;  // the rows of the sequence so far are those of code
  size_t first_ = 0;  // the sequence's first row
};

}  // namespace

Status run_line_program(const LineHeader& header, const FileNumbers& files, const Sections& s,
                        Rows& out, Budget& budget) {
  return LineMachine(header, files, s, out, budget).run();
}

}  // namespace uptier::dwarf
