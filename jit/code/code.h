// Code: one compiled body in the code space, with the tables that explain its addresses.
//
// The tables are sorted by offset. A trap row claims exactly one instruction: a fault at any other
// address is not ours. The Code owns its pages and frees them when it is destroyed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jit/code/code_space.h"
#include "jit/code/frame_row.h"
#include "jit/code/poll_words.h"
#include "jit/code/tally_table.h"
#include "jit/ir/inline_path.h"
#include "jit/ir/origin.h"
#include "uptier/ids.h"
#include "uptier/opcodes.h"

namespace uptier::jit {

struct TrapRow {
  uint32_t offset = 0;  // of the instruction that faults (memory access, division, ud2)
  TrapCode code = TrapCode::kNone;
  uint32_t loc = 0;
  uint32_t body = 0;  // of the location: 0 the method's own, k CodeTables::inlined[k - 1]

  friend bool operator==(const TrapRow&, const TrapRow&) = default;
};

// A call that the program makes, of any kind: the source location and the site for return address
// `offset`. 16 bytes each.
struct CallRow {
  uint32_t offset = 0;
  uint32_t loc = 0;
  uint32_t body = 0;       // of the location and the site, as in TrapRow
  uint32_t site : 28 = 0;  // of the call
  uint32_t bytes : 4 = 0;  // of the call instruction, which ends at `offset`

  friend bool operator==(const CallRow&, const CallRow&) = default;
};

// From `offset` up to the next row, the code belongs to `site` of `body`. Rows may have the same
// offset: between them there is no code, and the last of them has what follows.
//
// If `starts` is true, each execution of the instruction at `offset` is one execution of the block
// `site`. A block may have several such rows: if a pass copied it, each copy keeps the site, and
// their executions add up to those of the block. A site without a row was optimized away: nobody
// knows how often it ran, which is not the same as never. If only some of its copies were, its rows
// are `partial`: the block ran at least as often as they did.
struct ProbeRow {
  uint32_t offset = 0;
  SiteId site = 0;
  // The body of the site: 0 the method's own, k CodeTables::inlined[k - 1].
  uint32_t body = 0;
  bool starts = false;  // otherwise it goes on with a block, after an inlined call for example
  bool partial = false;

  friend bool operator==(const ProbeRow&, const ProbeRow&) = default;
};

// From `offset` up to the next row, the code was made for the instructions at `loc` of `body`. An
// instruction that a pass has made without a location belongs to the row before it. 12 bytes each.
struct LineRow {
  static constexpr uint32_t kUnknown = UINT32_MAX;

  uint32_t offset = 0;
  uint32_t loc = 0;   // or kUnknown
  uint32_t body = 0;  // of the location, as in TrapRow

  friend bool operator==(const LineRow&, const LineRow&) = default;
};

// An inlined body. Following `parent` gives the path of calls from the root.
struct InlineRow {
  uint32_t parent = 0;  // the body with the call: 0 the method's own, else 1 + its row
  SiteId site = 0;      // of the call, in the parent
  MethodId method;
  uint32_t loc = 0;  // of the call, in the parent

  friend bool operator==(const InlineRow&, const InlineRow&) = default;
};

// An execution count of a block of an inlined body, in an instrumented copy of optimized code: a
// word of the slab after the words of the method's own blocks. A site without an entry is unknown.
struct InlinedCount {
  uint32_t offset = 0;  // in bytes
  SiteId site = 0;      // of a block
  uint32_t body = 0;    // entry body - 1 of CodeTables::inlined

  friend bool operator==(const InlinedCount&, const InlinedCount&) = default;
};

// Another observation of an inlined body, in words of its own after those counts: the targets of an
// indirect call, or the values of a probe.
struct InlinedProbe {
  uint32_t offset = 0;  // of its first word, in bytes
  SiteId site = 0;
  uint32_t body = 0;  // as above
  ProbeKind kind = ProbeKind::kBlock;
  uint32_t top = 0;      // entries of its table
  bool of_call = false;  // of a call_indirect; otherwise of a probe

  friend bool operator==(const InlinedProbe&, const InlinedProbe&) = default;
};

// The place at a loop header where baseline copies transfer to one another.
struct LoopEntry {
  uint32_t continue_offset = 0;  // after the check: the copy continues
  uint32_t arrive_offset = 0;    // for transfers from the other copy (rbp is the frame)

  friend bool operator==(const LoopEntry&, const LoopEntry&) = default;
};

// The code of a timed loop, or of the function's body: from the first of its blocks to the end of
// its last one.
struct LoopRange {
  uint32_t loop = 0;  // LoopId::index(); the number of loops for the function
  uint32_t begin = 0;
  uint32_t end = 0;

  friend bool operator==(const LoopRange&, const LoopRange&) = default;
};

// A value that an exit transfers: where it is, and where it goes.
struct ExitValue {
  enum class From : uint8_t { kGp, kXmm, kFrame, kConstant };
  From from = From::kConstant;
  bool wide = true;   // 64 bits; otherwise only the low half matters
  int32_t to = 0;     // displacement from its frame's rbp, or the number of one of the host's slots
  uint64_t what = 0;  // register, displacement from rbp (as an int64_t), or bits

  friend bool operator==(const ExitValue&, const ExitValue&) = default;
};

// A frame that an exit creates.
struct ExitFrame {
  uint32_t body = 0;       // whose frame: 0 the code's own method, as in TrapRow
  uint32_t point = 0;      // where its baseline code resumes, see analysis/deopt_targets.h
  uint32_t pc = 0;         // the host's pc
  uint32_t values_at = 0;  // in CodeTables::exit_values
  uint32_t values = 0;

  friend bool operator==(const ExitFrame&, const ExitFrame&) = default;
};

// The map of an exit, which is a call of Routines::leave. `offset` is the call's return address.
struct ExitRow {
  uint32_t offset = 0;
  uint32_t exit = 0;  // its number, see analysis/deopt_targets.h
  uint32_t loc = 0;
  GuardReason reason = GuardReason::kType;
  bool in_loop = false;
  bool to_host = false;  // the values are slots of the host's interpreter
  LoopId polls = {};  // the header whose poll this is (the frame may continue elsewhere), or none
  uint32_t frames_at = 0;  // in CodeTables::exit_frames, the innermost first
  uint32_t frames = 0;

  friend bool operator==(const ExitRow&, const ExitRow&) = default;
};

// Four bytes of code that hold a distance, so they depend on where the code lies.
struct PlaceField {
  // To something outside of the body, to a poll word of the body, or to its other part.
  enum class To : uint32_t { kOutside, kPoll, kOtherPart };
  uint32_t offset : 30;
  uint32_t to : 2;

  To what() const { return static_cast<To>(to); }
  friend bool operator==(const PlaceField&, const PlaceField&) = default;
};

struct CodeTables {
  std::vector<TrapRow> traps;
  std::vector<CallRow> calls;
  std::vector<ProbeRow> probes;
  std::vector<LineRow> lines;                // only with CompileInput::lines
  std::vector<InlineRow> inlined;            // parents first; empty in baseline code
  std::vector<InlinedCount> inlined_counts;  // by rising offset, body and site
  std::vector<InlinedProbe> inlined_probes;  // likewise
  TallyTable tallies;                        // plain optimized code only
  std::vector<LoopEntry> loops;              // by LoopId; empty in optimized code
  std::vector<LoopRange> loop_ranges;        // by rising loop; instrumented copies only
  uint32_t data_at = 0;         // from here to the end of the hot part lies data: tables, constants
  uint32_t frame_size = 0;      // bytes below rbp; in OSR versions: below the baseline frame
  uint32_t baseline_frame = 0;  // of OSR versions: the size of that frame in bytes
  bool counts_edges = false;    // an instrumented copy; a trap must account for its frames
  std::vector<ExitRow> exits;   // sorted by offset
  std::vector<ExitFrame> exit_frames;
  std::vector<ExitValue> exit_values;
  // Callee-saved registers that the frame keeps, from the one at rbp + saved_at downwards.
  std::vector<uint8_t> saved;
  int32_t saved_at = 0;
  std::vector<FrameRow> frames;  // sorted by offset; none: see frame_row.h
  // Only in baseline code that can be entered in the middle: the offset of each point.
  std::vector<uint32_t> entries;
  std::vector<PlaceField> place_fields;  // in any order; only where CodeSpace::moves()

  friend bool operator==(const CodeTables&, const CodeTables&) = default;
};

class Code {
 public:
  // `method` is for users that find the Code by an address. Completes publishing `span`: from now on
  // CodeSpace::owner_of finds this object, so the bytes must be complete and executable.
  Code(CodeSpan span, uint32_t entry_offset, CodeTables tables, MethodId method = MethodId::none());
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  // The place of the code. Offsets count through the hot part and continue in the cold part, which may
  // lie far after it.
  const uint8_t* base() const { return span_.data(); }
  uint32_t size() const { return span_.size(); }
  uint32_t hot_size() const { return span_.hot_size(); }
  const uint8_t* cold_base() const { return span_.cold_data(); }
  const void* entry() const { return at(entry_offset_); }
  const void* at(uint32_t offset) const {
    return offset < hot_size() ? base() + offset : cold_base() + (offset - hot_size());
  }
  // Returns the offset of an address, or UINT32_MAX if it lies outside. Async-signal-safe.
  uint32_t offset_of(const void* pc) const noexcept;
  bool contains(const void* pc) const noexcept { return offset_of(pc) != UINT32_MAX; }
  uint32_t entry_offset() const { return entry_offset_; }
  const CodeTables& tables() const { return tables_; }
  // Moves the tallies out; afterwards its tables no longer have them.
  TallyTable take_tallies() { return std::exchange(tables_.tallies, {}); }
  // The method of this code; set before the code is installed.
  MethodId method() const { return method_; }
  void set_method(MethodId m) { method_ = m; }
  // The serial number among all codes made, and the poll words of its loops, by LoopId; also set
  // before.
  uint64_t serial() const { return serial_; }
  void set_serial(uint64_t n) { serial_ = n; }
  std::span<PollWord> polls() const { return polls_; }
  void set_polls(std::span<PollWord> words) { polls_ = words; }
  // The loop whose iterations an instrumented copy observes, and where that copy is entered; none
  // for all other code. Also set before.
  LoopId observed_loop() const { return observed_loop_; }
  void set_observed_loop(LoopId loop) { observed_loop_ = loop; }
  // Returns the row of a faulting address, or null. Async-signal-safe, logarithmic.
  const TrapRow* trap_at(const void* pc) const noexcept;
  // Returns the state of the frame at an address of this code. Async-signal-safe, logarithmic.
  FrameState frame_at(const void* pc) const noexcept;
  // Returns the row of the call that returns to an address, or null. Logarithmic, lock-free.
  const CallRow* call_at(const void* pc) const noexcept;
  // Declares that its calls are not the program's: they have no rows from now on. Call before it is
  // used.
  void hide_calls() { tables_.calls.clear(); }
  // Returns the exit whose call returns to an address, or null. Logarithmic.
  const ExitRow* exit_at(const void* pc) const noexcept;
  // Returns the site that an address belongs to, or 0. In optimized code it may be a site of an
  // inlined body; probe_at says of which one. Logarithmic.
  SiteId site_at(const void* pc) const noexcept;
  const ProbeRow* probe_at(const void* pc) const noexcept;
  // Returns the row of the instruction at an address; null if it is not known, and in code without
  // such rows. Logarithmic.
  const LineRow* line_at(const void* pc) const noexcept;
  // Returns the method of a body of this code: `body` 0 is the code's own.
  MethodId method_of(uint32_t body) const noexcept;
  // Returns whether a trap that unwinds frames of this code must report them to the TrapWalk.
  bool counts_edges() const { return tables_.counts_edges; }

 private:
  CodeSpan span_;
  uint32_t entry_offset_;
  MethodId method_;
  uint64_t serial_ = 0;
  std::span<PollWord> polls_;
  LoopId observed_loop_;
  CodeTables tables_;
};

// Returns the sites of the method's own body to which some address of the code belongs, ascending,
// each once. An instrumented copy of optimized code counts these blocks and those in
// CodeTables::inlined_counts, and no others.
std::vector<SiteId> observed_sites(const Code& code);
// Returns the calls that lead from the method's own body to `body`, the outermost first; empty for
// the method's own body.
InlinePath path_of(const Code& code, uint32_t body);

}  // namespace uptier::jit
