// Probes, in instrumented copies. A value is observed in the form of its ProbeKind: integers
// sign-extended, floats as the bits of a double.
#include "jit/ir/tally.h"
#include "jit/probes/inlined_counts.h"
#include "jit/x64/lower_impl.h"
#include "sampler/site_tables.h"

namespace uptier::jit::x64 {

// Returns the offset of the counter of a block probe, if it counts.
std::optional<uint32_t> Lowering::count_offset(const Inst& i) const {
  if (!is_block_probe(i) || resumes(i)) return std::nullopt;
  if (i.body == 0) {
    if (i.aux - 1 >= in_.counters.size()) return std::nullopt;
    return in_.counters[i.aux - 1];
  }
  if (in_.inlined == nullptr) return std::nullopt;
  const InlinedCount* c = find_inlined_count(*in_.inlined, i.body, i.aux);
  if (c == nullptr) return std::nullopt;
  return c->offset;
}

// Returns the place of another probe's counters, if it counts.
std::optional<ProbePlan::Site> Lowering::observed_site(const Inst& i) const {
  if (i.op != Opcode::kProbe || is_tally(i) || is_rounds(i)) return std::nullopt;
  bool sees = i.args.size != 0 || probe_kind(i) == ProbeKind::kHit;
  if (!sees) return std::nullopt;
  if (i.body == 0) {
    const ProbePlan::Site* s = planned_site(f_, in_.sites, i);
    return s == nullptr ? std::nullopt : std::optional(*s);
  }
  if (in_.inlined_probes == nullptr) return std::nullopt;
  const InlinedProbe* p = find_inlined_probe(*in_.inlined_probes, i.body, i.aux);
  if (p == nullptr) return std::nullopt;
  return ProbePlan::Site{p->kind, p->offset, p->top, p->of_call};
}

// The slab's address lives in a vreg: in a register if one is free, else in a slot.
Vreg Lowering::slab() {
  if (!slab_.valid()) slab_ = new_vreg(Type::kI64);
  return slab_;
}

void Lowering::count_at(uint32_t offset) {
  begin(MOp::kCount, 8);
  cur_.imm = offset;
  cur_.a = add(slab(), Role::kUse, Policy::kAny);
  emit();
  flush_group();
}

void Lowering::convert_to(Vreg to, Vreg from, Opcode op, Type from_type, Type to_type) {
  begin(MOp::kConvert, is_wide(to_type) ? 8 : 4);
  cur_.sub = static_cast<uint8_t>(op);
  cur_.from = static_cast<uint8_t>(from_type);
  cur_.to = static_cast<uint8_t>(to_type);
  cur_.d = add(to, Role::kDef, Policy::kReg);
  cur_.a = add(from, Role::kUse, Policy::kReg);
  emit();
}

Vreg Lowering::observed(Value v) {
  Vreg from = use(v);
  Type t = f_.type_of(v);
  if (t == Type::kI64 || t == Type::kRef) return from;
  Vreg seen = new_vreg(Type::kI64);
  if (t == Type::kI32) {
    begin(MOp::kExtend, 8);
    cur_.sub = static_cast<uint8_t>(Extension::kSign32);
    cur_.d = add(seen, Role::kDef, Policy::kReg);
    cur_.a = add(from, Role::kUse, Policy::kAny);
    emit();
    return seen;
  }
  if (t == Type::kF32) {
    Vreg wide = new_vreg(Type::kF64);
    convert_to(wide, from, Opcode::kPromote, Type::kF32, Type::kF64);
    from = wide;
  }
  convert_to(seen, from, Opcode::kBitcast, Type::kF64, Type::kI64);
  return seen;
}

void Lowering::observe(const Inst& i, const ProbePlan::Site& s) {
  if (s.kind == ProbeKind::kHit) return count_at(s.offset);
  Vreg seen = observed(f_.args(i)[0]);
  begin(MOp::kObserve, 8);
  cur_.sub = static_cast<uint8_t>(s.kind);
  cur_.imm = uint64_t{i.aux} << 32 | s.offset;
  cur_.loc = {i.loc, i.body};
  bool range = s.kind == ProbeKind::kRange, log = s.kind == ProbeKind::kLog;
  bool table = s.kind == ProbeKind::kCallTarget || s.kind == ProbeKind::kValue;
  bool recent = i.body == 0 && in_.sites->recent;
  sampler::TableShape shape{s.top, s.kind == ProbeKind::kValue, recent};
  cur_.disp = static_cast<int32_t>(table ? shape.packed() : probe_tag(i));
  cur_.a = add(slab(), Role::kUse, range ? Policy::kReg : Policy::kAny);
  cur_.b = add(seen, Role::kUse, Policy::kReg);
  m_.has_calls |= table || log;
  emit();
  flush_group();
}

void Lowering::lower_tally(const Inst& i) {
  begin(MOp::kTally, 8);
  cur_.imm = i.aux;
  if (i.args.size != 0) cur_.a = add(use(f_.args(i)[0]), Role::kUse, Policy::kReg);
  emit();
}

void Lowering::lower_probe(const Inst& i) {
  if (is_tally(i)) return lower_tally(i);
  const bool merged = is_remnant(i) || is_rounds(i);
  if (std::optional<uint32_t> offset = count_offset(i)) count_at(*offset);
  if (std::optional<ProbePlan::Site> site = observed_site(i)) observe(i, *site);
  using Kind = MProbe::Kind;
  Kind kind = merged                             ? Kind::kMerged
              : is_block_probe(i) && !resumes(i) ? Kind::kStarts
                                                 : Kind::kGoesOn;
  // Instructions are emitted backwards: those emitted so far come after the probe. See turn_round.
  m_.probes.push_back({static_cast<uint32_t>(m_.insts.size()), i.aux, i.body, kind});
}

// Loads the slab at the entry, which is lowered last, when it is known whether anything counts.
void Lowering::load_slab() {
  if (!slab_.valid()) return;
  begin(MOp::kLoadSlab, 8);
  cur_.d = add(slab_, Role::kDef, Policy::kReg);
  emit();
  flush_group();
}

}  // namespace uptier::jit::x64
