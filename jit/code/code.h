// Code: one compiled body in the code space, with the tables that explain its addresses.
//
// The tables are sorted by offset. A trap row claims exactly one instruction: a fault at any other
// address is not ours. The Code owns its pages; they are freed with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/code/code_space.h"
#include "uptier/ids.h"
#include "uptier/opcodes.h"

namespace uptier::jit {

struct TrapRow {
  uint32_t offset = 0;  // of the instruction that faults (memory access, division, ud2)
  TrapCode code = TrapCode::kNone;
  uint32_t loc = 0;
};

// From `offset` on, up to the next row, the code belongs to `site`.
struct ProbeRow {
  uint32_t offset = 0;
  SiteId site = 0;
};

// Where a baseline copy meets the others at a loop header.
struct LoopEntry {
  uint32_t continue_offset = 0;  // after the check: the copy goes on
  uint32_t arrive_offset = 0;    // for transfers from the other copy (rbp is the frame)
};

struct CodeTables {
  std::vector<TrapRow> traps;
  std::vector<ProbeRow> probes;
  std::vector<LoopEntry> loops;  // by LoopId; empty in optimized code
  uint32_t frame_size = 0;       // bytes below rbp; OSR versions: below the baseline frame
};

class Code {
 public:
  Code(CodeSpan span, uint32_t entry_offset, CodeTables tables)
      : span_(std::move(span)), entry_offset_(entry_offset), tables_(std::move(tables)) {}

  const uint8_t* base() const { return span_.data(); }
  uint32_t size() const { return span_.size(); }
  const void* entry() const { return base() + entry_offset_; }
  const void* at(uint32_t offset) const { return base() + offset; }
  const CodeTables& tables() const { return tables_; }
  // Returns the row of a faulting address, or null. Async-signal-safe, logarithmic.
  const TrapRow* trap_at(const void* pc) const noexcept;
  // Returns the site that an address belongs to, 0 when none.
  SiteId site_at(const void* pc) const noexcept;

 private:
  CodeSpan span_;
  uint32_t entry_offset_;
  CodeTables tables_;
};

}  // namespace uptier::jit
