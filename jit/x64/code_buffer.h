// CodeBuffer: one body being written, until it is published as Code.
//
//   emit (asm_, rows, labels) -> publish: cold traps, constants, links, pages, bytes, tables, owner
//
// What follows begin_cold() is not expected to run: in a packed space it goes to a part of its own,
// with calls and jumps between the two; in others it is written after the rest.
//
// Emission never fails half way: the first error of the assembler is kept, and publish() returns
// it. All offsets are from the first byte emitted, those of the cold part from kColdPart on until
// they are published, and after the hot ones then (Code::at). Nothing in the bytes depends on
// where they end up but the rel32 fields that call_address() and its like leave behind, and the
// distances between the two parts; in a space whose code moves they are listed (PlaceField).
//
//   Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "jit/x64/asmjit.h"
#include "jit/x64/blinding.h"
#include "uptier/result.h"

namespace uptier::jit {

class CodeBuffer {
 public:
  explicit CodeBuffer(const CodeSpace& space);
  ~CodeBuffer();
  CodeBuffer(const CodeBuffer&) = delete;
  CodeBuffer& operator=(const CodeBuffer&) = delete;

  // The assembler. Its error state is the buffer's: return values need no check.
  Assembler& assembler() { return asm_; }
  uint32_t offset() const {
    return static_cast<uint32_t>(asm_.offset()) + (in_cold_ ? kColdPart : 0);
  }
  // What a body says is emitted from here on: its constants are blinded, if the space wants it.
  void begin_body();
  // Returns whether a constant of 64 bits is to be hidden.
  bool hides(uint64_t bits) const { return asm_.hides(static_cast<int64_t>(bits)); }
  // Returns whether a float's constant is to be hidden: those with 16 bits that are not 0 are not.
  bool hides_float(uint64_t bits, bool wide) const;
  // The bits that hide the constants of floats, and an operand of 16 bytes with them.
  uint64_t float_key(bool wide) const { return wide ? float_key_ : float_key_ & UINT32_MAX; }
  Mem float_key_operand(bool wide) { return constant128(float_key(wide), 0); }
  // Where indirect calls or jumps land: ENDBR64, if the space wants it.
  void landing_pad() {
    if (has_landing_pads()) asm_.endbr64();
  }
  bool has_landing_pads() const { return space_.hardening().landing_pads; }
  // Jumps to a place inside of a body that the library has found itself: it is no landing pad.
  void jump_untracked(const Gp& to);

  // While there is one, what is emitted is the library's own: nothing is blinded, so scratch
  // registers may hold something from one instruction to the next.
  class LibrarysOwn {
   public:
    explicit LibrarysOwn(CodeBuffer& b) : asm_(b.asm_) { asm_.pause(); }
    ~LibrarysOwn() { asm_.go_on(); }
    LibrarysOwn(const LibrarysOwn&) = delete;
    LibrarysOwn& operator=(const LibrarysOwn&) = delete;

   private:
    BlindAssembler& asm_;
  };

  // From here on the code is cold. Once; calls after the first do nothing.
  void begin_cold();
  // Returns whether that is a part of its own.
  bool has_cold_part() const { return cold_section_ != nullptr; }
  Label new_label() { return asm_.newLabel(); }
  void bind(const Label& l) { asm_.bind(l); }
  uint32_t offset_of(const Label& l) const;
  // Rewrites four bytes emitted before, e.g. the size in the prologue's `sub rsp`.
  void patch32(uint32_t at, uint32_t value);

  // The tables of the Code to be. Traps and probes are filled through the functions below; the
  // loops and the frame size directly.
  CodeTables& tables() { return tables_; }

  // Claims the instruction emitted next: if it faults, the call ends with `code`.
  void trap_row(TrapCode code, Origin at) {
    tables_.traps.push_back({offset(), code, at.loc, at.body});
  }
  // Says whose the call is that was emitted last.
  void call_row(Origin of) { tables_.calls.push_back({offset(), of.loc, of.body}); }
  // From here on the frame stands so. Code that never says it has the usual one: see frame_row.h.
  void frame_row(FrameState state);
  // Returns a label after the body whose code traps. For the slow side of a conditional jump. In
  // code that counts edges each block has its own, so that the trap belongs to the right one; and
  // so has each way in which the frame may stand.
  Label trap_label(TrapCode code, Origin at);
  // Traps here.
  void trap_now(TrapCode code, Origin at);
  // From here on the code belongs to `site` of `body`. Of two rows at one offset the later counts.
  void probe_row(SiteId site, uint32_t body = 0);

  // Binds `table` and writes the distances of labels from it, 32 bits each, after the hot code.
  // The labels must be bound when the code is published.
  void distances(const Label& table, std::vector<Label> targets) {
    tables32_.push_back({table, std::move(targets)});
  }

  // Returns a memory operand of a constant after the body, reached relative to rip. Equal
  // constants are stored once. A 16-byte constant is aligned for SSE operands.
  Mem constant32(uint32_t bits) { return constant(bits, 0, 4); }
  Mem constant64(uint64_t bits) { return constant(bits, 0, 8); }
  Mem constant128(uint64_t low, uint64_t high) { return constant(low, high, 16); }

  // Transfers to absolute addresses. Inside the code space they are rel32; outside, r11 is loaded.
  void call_address(const void* target);
  void jump_address(const void* target);
  // The target must be inside the code space.
  void jump_address_if(x86::CondCode condition, const void* target);
  // Transfers through the 8-byte word at an address; outside the code space, r11 is loaded.
  void call_cell(const void* cell);
  void jump_cell(const void* cell);
  // cmp dword [word], 0; outside the code space, r11 is loaded.
  void compare_word_with_0(const void* word);
  // Emits `opcode` and a rel32 field to an address inside the code space, which ends the
  // instruction.
  void rel32(std::initializer_list<uint8_t> opcode, const void* target);
  // dst = the calling thread's ThreadContext: mov dst, fs:[offset].
  void load_context(const Gp& dst);
  // Returns an operand for the word `at` bytes into the state that the calling thread has of a method;
  // dst has the address of the method's block.
  Mem method_word(const Gp& dst, MethodId m, uint32_t at, uint32_t bytes);

  // Returns an error if one occurred so far.
  Status status() const;

  // Ends the emission and installs the bytes: read-write pages, bytes, read-execute, tables, owner.
  // The buffer is spent. Errors: kInvalidInput for what the assembler refused, kResourceExhausted
  // for the budget.
  Result<std::unique_ptr<Code>> publish(CodeSpace& space, uint32_t entry_offset, MethodId method,
                                        bool beyond_budget = false);
  // The same without tables and owner, for stubs and routines: code that must not fault.
  Result<CodeSpan> publish_bare(CodeSpace& space, bool beyond_budget = false);

 private:
  // Memory that is refused ends the emission at once, as it does where a table of ours cannot grow:
  // labels that were not made must not be asked where they are.
  class FirstError final : public asmjit::ErrorHandler {
   public:
    void handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) override {
      end_without_memory(error);
      if (text.empty()) text = message;
      failed = true;
    }
    static void end_without_memory(asmjit::Error error);
    std::string text;
    bool failed = false;
  };
  // Trap rows stay with the instruction that faults.
  class BodyAssembler final : public BlindAssembler {
   public:
    explicit BodyAssembler(CodeBuffer& b) : buffer_(b) {}

   private:
    void instruction_moved(size_t bytes) override;
    CodeBuffer& buffer_;
  };
  struct ColdTrap {
    TrapCode code;
    Origin at;
    SiteId site;  // 0 in code that does not count edges
    FrameState frame;
    Label label;
  };
  struct Constant {
    uint64_t low, high;
    uint32_t size;
    Label label;
  };
  struct Rel32 {
    uint32_t at;  // of the field; relative to its end
    const void* target;
    PlaceField::To to = PlaceField::To::kOutside;
  };
  struct Distances {
    Label table;
    std::vector<Label> targets;
  };
  static constexpr uint32_t kColdPart = 1u << 30;

  void load_tls(const Gp& dst, int64_t offset);
  Mem constant(uint64_t low, uint64_t high, uint32_t size);
  void emit_cold_traps();
  void emit_constants();
  void emit_distances();
  Status close();
  uint32_t hot_bytes() const;
  uint32_t cold_bytes() const;
  void number_offsets();
  void list_place_fields();
  void list_links();
  void list_distances();
  bool is_cold(const Label& l) const;
  Status place(const CodeSpan& span);
  Status link(const CodeSpan& span);

  const CodeSpace& space_;
  asmjit::CodeHolder holder_;
  BodyAssembler asm_{*this};
  FirstError error_;
  CodeTables tables_;
  std::vector<ColdTrap> cold_;
  std::vector<Constant> constants_;
  std::vector<Rel32> rel32_;
  std::vector<Distances> tables32_;
  uint64_t float_key_ = 0;
  asmjit::Section* cold_section_ = nullptr;  // of a packed space
  bool in_cold_ = false;                     // what is emitted goes there
  uint32_t cold_at_ = UINT32_MAX;            // in other spaces, where the cold part begins
};

}  // namespace uptier::jit
