// Calls, parameters and results by the System V convention; see call_layout.h.
#include <algorithm>

#include "jit/x64/call_layout.h"
#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {
namespace {

Location location(ArgPlace p) {
  switch (p.kind) {
    case ArgPlace::Kind::kGp: return Location::reg(kGpArgs[p.index]);
    case ArgPlace::Kind::kXmm: return Location::reg(kXmm0 + p.index);
    case ArgPlace::Kind::kStack: return Location::outgoing(p.index);
  }
  return {};
}

Location result_place(Type t) { return Location::reg(is_float(t) ? kXmm0 : kRax); }

}  // namespace

// Lowers the parameters: those in registers all at once, then those in memory one by one. The group
// of instructions is in forward order, directly after the block's label.
void Lowering::lower_entry() {
  auto params = f_.params(f_.entry());
  std::vector<std::pair<Vreg, Vreg>> cleaned;
  begin(MOp::kEntry, 8);
  ArgCursor places;
  bool osr = in_.osr;
  std::vector<std::pair<Vreg, int32_t>> from_memory;
  for (size_t n = 0; n < params.size(); ++n) {
    Value p = params[n];
    Location at = osr ? Location() : location(places.next(f_.type_of(p)));
    if (!needed(p)) continue;
    Vreg v = vreg(p);
    if (osr || !at.is_reg()) {
      int32_t disp = osr ? in_.frame_slots[n] : static_cast<int32_t>(16 + 8 * at.index());
      from_memory.push_back({v, disp});
      continue;
    }
    if (widths_.clean[p.index()]) {
      Vreg raw = new_vreg(Type::kI32);
      cleaned.push_back({raw, v});
      v = raw;
    }
    add(v, Role::kDef, Policy::kFixed, at);
  }
  emit();
  for (auto [raw, v] : cleaned) {
    begin(MOp::kExtend, 4);
    cur_.sub = static_cast<uint8_t>(Extension::kZero32);
    cur_.d = add(v, Role::kDef, Policy::kReg);
    cur_.a = add(raw, Role::kUse, Policy::kReg);
    emit();
  }
  for (auto [v, disp] : from_memory) {
    begin(MOp::kLoadFrame, is_wide(m_.vregs[v.index()].type) ? 8 : 4);
    cur_.disp = disp;
    cur_.d = add(v, Role::kDef, Policy::kReg);
    emit();
  }
  flush_group();
}

void Lowering::lower_call(const Inst& i) {
  Shape shape = info(i.op).shape;
  const Signature& sig = f_.signature_of(i);
  auto args = f_.args(i);
  bool indirect = shape == Shape::kCallIndirect;
  begin(indirect                    ? MOp::kCallIndirect
        : shape == Shape::kCallHost ? MOp::kCallHost
                                    : MOp::kCall,
        8, i.origin());
  cur_.imm = i.imm;
  cur_.flags = i.flags;
  cur_.site = i.site;
  Vreg result, raw;
  if (i.result.valid() && needed(i.result)) {
    result = raw = vreg(i.result);
    if (widths_.clean[i.result.index()]) raw = new_vreg(Type::kI32);
    cur_.d = add(raw, Role::kDef, Policy::kFixed, result_place(sig.result));
  }
  ArgCursor places;
  auto pass = [&](Value v, Location at) {
    auto c = constant_of(v);
    uint8_t n = add(c ? Vreg::none() : vreg(v), Role::kUse, Policy::kFixed, at);
    // `n` is 8 bits wide and may wrap around.
    if (c) cur_operands_.back().constant = constant_index(*c);
    return n;
  };
  if (indirect) cur_.a = pass(args[0], Location::reg(kRax));
  for (size_t n = indirect ? 1 : 0; n < args.size(); ++n) {
    pass(args[n], location(places.next(f_.type_of(args[n]))));
  }
  m_.has_calls = true;
  m_.outgoing_words = std::max(m_.outgoing_words, places.stack_words());
  emit();
  if (result != raw) {
    begin(MOp::kExtend, 4);
    cur_.sub = static_cast<uint8_t>(Extension::kZero32);
    cur_.d = add(result, Role::kDef, Policy::kReg);
    cur_.a = add(raw, Role::kUse, Policy::kReg);
    emit();
  }
}

void Lowering::lower_return(const Inst& i) {
  begin(MOp::kReturn, 8);
  if (i.args.size != 0) {
    Value v = f_.args(i)[0];
    auto c = constant_of(v);
    uint8_t n =
        add(c ? Vreg::none() : vreg(v), Role::kUse, Policy::kFixed, result_place(f_.type_of(v)));
    if (c) cur_operands_[n].constant = constant_index(*c);
  }
  emit();
}

}  // namespace uptier::jit::x64
