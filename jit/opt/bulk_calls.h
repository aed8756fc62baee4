// Finds host calls that copy or fill (kCallCopies, kCallFills) and are short enough to be done
// inline.
#pragma once

#include <algorithm>

#include "jit/ir/function.h"

namespace uptier::jit {

// The most bytes that are copied by loads and stores: they are all in registers in between.
inline constexpr uint64_t kMostCopied = 32;
inline constexpr uint64_t kMostFilled = 64;

inline bool is_bulk_call(const Inst& i) {
  return i.op == Opcode::kCallHost && (i.flags & (kCallCopies | kCallFills)) != 0;
}
inline Value length_of(const Function& f, const Inst& bulk_call) { return f.args(bulk_call)[4]; }

inline bool is_short(const Inst& bulk_call, uint64_t length) {
  return length != 0 && length <= ((bulk_call.flags & kCallCopies) ? kMostCopied : kMostFilled);
}

// Returns the constant length of a call that can be done inline; 0 for everything else.
inline uint32_t short_length(const Function& f, const Inst& i) {
  if (!is_bulk_call(i)) return 0;
  InstId def = f.value(length_of(f, i)).inst;
  bool known = def.valid() && f.inst(def).op == Opcode::kConst && is_short(i, f.inst(def).imm);
  return known ? static_cast<uint32_t>(f.inst(def).imm) : 0;
}

// Returns whether the function has such calls. Most have none. Cost: linear, but constant for a
// function that calls no host functions.
inline bool has_bulk_calls(const Function& f) {
  if (f.host_callees.empty()) return false;
  return std::ranges::any_of(f.layout, [&](Block b) {
    const auto& insts = f.block(b).insts;
    return std::ranges::any_of(insts, [&](InstId i) { return is_bulk_call(f.inst(i)); });
  });
}

}  // namespace uptier::jit
