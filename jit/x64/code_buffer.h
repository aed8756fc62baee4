// CodeBuffer: one body being written, until it is published as Code.
//
//   emit (asm_, rows, labels) -> publish: cold traps, constants, links, pages, bytes, tables, owner
//
// Code after begin_cold() is not expected to run. In a packed space it goes to a part of its own,
// with calls and jumps between the two; in other spaces it follows the rest.
//
// Emission never fails half way: the first error of the assembler is kept, and publish() returns
// it. All offsets count from the first byte emitted. Offsets in the cold part start at kColdPart
// until the code is published; then they follow those of the hot part (Code::at). Only two things
// in the bytes depend on where they end up: the rel32 fields of call_address() and similar
// functions, and the distances between the two parts. In a space whose code moves these are listed
// (PlaceField).
//
//   Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "jit/code/recorded_code.h"
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

  // The assembler. The buffer holds its error state, so return values need no check.
  Assembler& assembler() { return asm_; }
  uint32_t offset() const {
    return static_cast<uint32_t>(asm_.offset()) + (in_cold_ ? kColdPart : 0);
  }
  // Code emitted from here on is the body: its constants are blinded if the space asks for it.
  void begin_body();
  // Returns whether a 64-bit constant is to be hidden.
  bool hides(uint64_t bits) const { return asm_.hides(static_cast<int64_t>(bits)); }
  // Returns whether a float constant is to be hidden: not if all bits but the top 16 are 0.
  bool hides_float(uint64_t bits, bool wide) const;
  // The bits that hide float constants, and a 16-byte operand with them.
  uint64_t float_key(bool wide) const { return wide ? float_key_ : float_key_ & UINT32_MAX; }
  Mem float_key_operand(bool wide) { return constant128(float_key(wide), 0); }
  // Marks a target of indirect calls or jumps: ENDBR64, if the space asks for it.
  void landing_pad() {
    if (has_landing_pads()) asm_.endbr64();
  }
  bool has_landing_pads() const { return space_.hardening().landing_pads; }
  // Jumps to an address inside of a body that the library has computed itself: the target needs no
  // landing pad.
  void jump_untracked(const Gp& to);

  // While one exists, the emitted code is the library's own: nothing is blinded, so scratch
  // registers may carry values from one instruction to the next.
  class LibrarysOwn {
   public:
    explicit LibrarysOwn(CodeBuffer& b) : asm_(b.asm_) { asm_.pause(); }
    ~LibrarysOwn() { asm_.go_on(); }
    LibrarysOwn(const LibrarysOwn&) = delete;
    LibrarysOwn& operator=(const LibrarysOwn&) = delete;

   private:
    BlindAssembler& asm_;
  };

  // Begins the cold code. Calls after the first do nothing.
  void begin_cold();
  // Returns whether the cold code is a separate part.
  bool has_cold_part() const { return cold_section_ != nullptr; }
  Label new_label() { return asm_.newLabel(); }
  void bind(const Label& l) { asm_.bind(l); }
  uint32_t offset_of(const Label& l) const;
  // Overwrites four bytes emitted before, e.g. the size in the prologue's `sub rsp`.
  void patch32(uint32_t at, uint32_t value);

  // The tables of the Code being made. Traps and probes are added through the functions below; the
  // loops and the frame size directly.
  CodeTables& tables() { return tables_; }

  // Adds a row for the instruction emitted next: if it faults, the call ends with `code`.
  void trap_row(TrapCode code, Origin at) {
    tables_.traps.push_back({offset(), code, at.loc, at.body});
  }
  // Records the origin and the site of the call emitted last, and the length of its instruction.
  void call_row(Origin of, SiteId site, uint32_t bytes) {
    tables_.calls.push_back({offset(), of.loc, of.body, site & kMostSite, bytes & 15});
  }
  // Sets the state of the frame from here on. Code without such rows has the usual frame: see
  // frame_row.h.
  void frame_row(FrameState state);
  // Returns a label after the body whose code traps, for the slow path of a conditional jump. Each
  // frame state has labels of its own. In code that counts edges each block has its own too, so
  // that the trap is attributed to the right one.
  Label trap_label(TrapCode code, Origin at);
  // Traps here.
  void trap_now(TrapCode code, Origin at);
  // The code gets no rows of blocks. Call it before the first one; not for code that counts edges,
  // whose traps need them.
  void omit_block_rows() { has_block_rows_ = false; }
  // Code emitted from here on belongs to `site` of `body`; see ProbeRow.
  void probe_row(SiteId site, uint32_t body = 0, bool starts = false);
  // A start of the block gets no row.
  void lose_row(SiteId site, uint32_t body) {
    if (has_block_rows_) lost_rows_.push_back({body, site});
  }
  // Code emitted from here on was made for an instruction of this origin; see LineRow. Location 0 changes
  // nothing.
  void line_row(Origin at) {
    if (at.loc != 0) add_line({offset(), at.loc, at.body});
  }
  // The same, where the code before does not lead here: then location 0 is an unknown one.
  void first_line_row(Origin at) {
    at.loc != 0 ? line_row(at) : add_line({offset(), LineRow::kUnknown, 0});
  }
  // The rows end here: those without an instruction are lost.
  void end_rows();

  // Binds `table` after the hot code, and writes there the distances of the targets from it, 32
  // bits each. The targets must be bound when the code is published.
  void distances(const Label& table, std::vector<Label> targets) {
    tables32_.push_back({table, std::move(targets)});
  }

  // Returns a memory operand for a constant after the body, relative to rip. Equal constants are
  // stored once. A 16-byte constant is aligned for SSE operands.
  Mem constant32(uint32_t bits) { return constant(bits, 0, 4); }
  Mem constant64(uint64_t bits) { return constant(bits, 0, 8); }
  Mem constant128(uint64_t low, uint64_t high) { return constant(low, high, 16); }

  // Transfers to absolute addresses: rel32 inside the code space; through r11 outside of it. Calls
  // return the length of the call instruction.
  uint32_t call_address(const void* target);
  void jump_address(const void* target);
  // The target must be inside the code space.
  void jump_address_if(x86::CondCode condition, const void* target);
  // Transfers through the 8-byte word at an address. Outside the code space they change r11.
  uint32_t call_cell(const void* cell);
  // Calls a label of this body; calls through a register.
  uint32_t call_label(const Label& l);
  uint32_t call_register(const Gp& target);
  void jump_cell(const void* cell);
  // cmp dword [word], 0. Outside the code space it changes r11.
  void compare_word_with_0(const void* word);
  // Emits `opcode` and a rel32 field that ends the instruction. The target must be inside the code
  // space.
  void rel32(std::initializer_list<uint8_t> opcode, const void* target);
  // dst = an address that belongs to this process.
  void load_address(const Gp& dst, const void* address);
  // dst = the calling thread's ThreadContext: mov dst, fs:[offset].
  void load_context(const Gp& dst);
  // Returns an operand for the word at offset `at` of the calling thread's state of a method. dst
  // holds the address of the method's block. Say method_word_used() after the one instruction that
  // uses it, which must end with the operand's displacement.
  Mem method_word(const Gp& dst, MethodId m, uint32_t at, uint32_t bytes);
  void method_word_used();
  // dst = the index of a method.
  void load_method_index(const Gp& dst, MethodId m);

  // From here on, notes each field whose contents belong to this process, for record(). Everything
  // that puts an address, an offset in TLS or the number of a method into code must go through the
  // functions above. `m`: the method that the code belongs to. Call it first.
  void note_refs(MethodId m);

  // Returns the first error so far, if any.
  Status status() const;

  // Ends the emission and installs the bytes: read-write pages, bytes, read-execute, tables, owner.
  // The buffer cannot be used afterwards. Errors: kInvalidInput if the assembler refused something,
  // kResourceExhausted if the budget is spent.
  Result<std::unique_ptr<Code>> publish(CodeSpace& space, uint32_t entry_offset, MethodId method,
                                        bool beyond_budget = false);
  // Ends the emission and returns it without a place, after note_refs(). The buffer cannot be used
  // afterwards. Errors: kUnsupported if the code holds something of this process that has no name
  // (CodeRef); kInvalidInput as publish.
  Result<RecordedCode> record(uint32_t entry_offset);
  // The same as publish() without tables and owner, for stubs and routines: code that must not fault.
  Result<CodeSpan> publish_bare(CodeSpace& space, bool beyond_budget = false);

 private:
  // If memory runs out, the emission ends at once by an exception, just as when one of our own
  // tables cannot grow: a label that could not be made must not be looked up.
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
  // Moves a trap row along when the instruction that faults is moved.
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
    uint32_t at;  // of the field; the distance is relative to its end
    const void* target;
    PlaceField::To to = PlaceField::To::kOutside;
  };
  struct Distances {
    Label table;
    std::vector<Label> targets;
  };
  static constexpr uint32_t kColdPart = 1u << 30;
  static constexpr SiteId kMostSite = (1u << 28) - 1;

  void add_line(const LineRow& row);
  void load_tls(const Gp& dst, int64_t offset, CodeRef::Kind kind);
  void note_ref(CodeRef::Kind kind, uint64_t contents, const void* target = nullptr,
                uint32_t plus = 0);
  Mem constant(uint64_t low, uint64_t high, uint32_t size);
  void emit_cold_traps();
  void emit_constants();
  void emit_distances();
  Status close();
  uint32_t hot_bytes() const;
  uint32_t cold_bytes() const;
  void mark_partial_rows();
  void number_offsets();
  void list_place_fields();
  void list_links();
  void list_distances();
  bool is_cold(const Label& l) const;
  Status place(int64_t cold_at);
  Status link(const CodeSpan& span);
  void copy_parts(uint8_t* to) const;
  void write_distances(uint8_t* to, const uint8_t* hot_at, const uint8_t* cold_at) const;

  const CodeSpace& space_;
  asmjit::CodeHolder holder_;
  BodyAssembler asm_{*this};
  FirstError error_;
  CodeTables tables_;
  bool has_block_rows_ = true;
  std::vector<std::pair<uint32_t, SiteId>> lost_rows_;  // body, site
  std::vector<ColdTrap> cold_;
  std::vector<Constant> constants_;
  std::vector<Rel32> rel32_;
  std::vector<Distances> tables32_;
  uint64_t float_key_ = 0;
  asmjit::Section* cold_section_ = nullptr;  // only in a packed space
  bool in_cold_ = false;                     // emission goes to the cold section
  uint32_t cold_at_ = UINT32_MAX;            // in other spaces: where the cold code begins
  // With note_refs():
  MethodId refs_of_;
  std::vector<CodeRef> refs_;
  uint32_t words_open_ = 0;        // words of the method without method_word_used()
  uint32_t word_at_ = 0;           // of the last one
  const char* unnamed_ = nullptr;  // what cannot be recorded
};

}  // namespace uptier::jit
