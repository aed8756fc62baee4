#include "jit/analysis/slot_laws.h"

#include <algorithm>
#include <cstdio>

#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

using Kind = SlotLaw::Kind;

// Returns the loop's header instruction, or null.
const Inst* header_of(const Function& f, LoopId loop) {
  for (Block b : f.layout) {
    const Inst& first = f.inst(f.block(b).insts.front());
    if (first.op == Opcode::kLoopHeader && first.aux == loop.index()) return &first;
  }
  return nullptr;
}

}  // namespace

std::vector<SlotLaw> slot_laws(const Function& f, LoopId loop) {
  std::vector<SlotLaw> laws;
  const Inst* header = header_of(f, loop);
  if (header == nullptr) return laws;
  auto slots = f.args(*header);
  for (uint32_t k = 0; k < slots.size(); ++k) {
    const ValueData& v = f.value(slots[k]);
    auto first = static_cast<uint32_t>(std::ranges::find(slots, slots[k]) - slots.begin());
    if (v.inst.valid() && f.inst(v.inst).op == Opcode::kConst) {
      laws.push_back({Kind::kConstant, v.type, k, f.inst(v.inst).imm});
    } else if (!v.inst.valid() && v.block == f.entry()) {
      laws.push_back({Kind::kArgument, v.type, k, v.index});
    } else if (first != k) {
      laws.push_back({Kind::kSlot, v.type, k, first});
    }
  }
  return laws;
}

const SlotLaw* broken_law(std::span<const SlotLaw> laws, std::span<const uint64_t> args,
                          const uint64_t* frame) noexcept {
  for (const SlotLaw& law : laws) {
    uint64_t is = law.is;
    if (law.kind == Kind::kArgument) is = args[law.is];
    if (law.kind == Kind::kSlot) is = frame[law.is];
    if (clip(law.type, frame[law.slot]) != clip(law.type, is)) return &law;
  }
  return nullptr;
}

std::string law_text(const SlotLaw& law) {
  if (law.kind == Kind::kArgument) return "argument " + std::to_string(law.is);
  if (law.kind == Kind::kSlot) return "the value of slot " + std::to_string(law.is);
  char text[40];
  std::snprintf(text, sizeof text, "the constant 0x%llx", static_cast<unsigned long long>(law.is));
  return text;
}

}  // namespace uptier::jit
