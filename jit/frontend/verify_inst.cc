// Checks the rules of one instruction, by shape.
#include <algorithm>
#include <array>

#include "jit/frontend/add_fuel.h"
#include "jit/frontend/verify_impl.h"
#include "jit/ir/names.h"
#include "jit/ir/semantics.h"
#include "jit/ir/tally.h"
#include "jit/ir/turns.h"

namespace uptier::jit {
namespace {

std::string type_list(uint8_t mask) {
  std::string out;
  for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64, Type::kRef}) {
    if (!(mask & mask_of(t))) continue;
    out += (out.empty() ? "" : " or ") + std::string(type_name(t));
  }
  return out;
}

constexpr size_t kAnyCount = SIZE_MAX;

// Returns the flag that the call may have, kCallCopies or kCallFills; 0 if its signature does not fit.
uint8_t bulk_flags(const Function& f, const Inst& call) {
  constexpr std::array kParams = {Type::kRef, Type::kRef, Type::kI32, Type::kI32, Type::kI32};
  if (call.aux >= f.signatures.size()) return 0;
  const Signature& s = f.signature_of(call);
  if (s.result != Type::kI32 || !std::ranges::equal(s.params, kParams)) return 0;
  return (call.flags & kCallCopies) != 0 ? kCallCopies : kCallFills;
}

}  // namespace

// Returns whether an instruction is of a common kind and satisfies every rule. Most do.
bool Verifier::is_plain(const Inst& i) const {
  if (i.site != 0 || i.body > f_.inlined.size()) return false;
  Shape shape = info(i.op).shape;
  if (shape == Shape::kLoad || shape == Shape::kStore) return is_plain_access(i, shape);
  if (i.flags != 0) return false;
  if (i.edge_count != 0) return is_plain_branch(i, shape);
  auto args = f_.args(i);
  auto takes = [&](size_t first, size_t count) {
    if (args.size() != first + count) return false;
    for (Value v : args.subspan(first)) {
      if (f_.type_of(v) != i.type) return false;
    }
    return true;
  };
  switch (shape) {
    case Shape::kConst: return args.empty() && clip(i.type, i.imm) == i.imm;
    case Shape::kUnary:
    case Shape::kTest: return takes(0, 1);
    case Shape::kBinary:
    case Shape::kCompare: return takes(0, 2);
    case Shape::kSelect: return takes(1, 2) && f_.type_of(args[0]) == Type::kI32;
    case Shape::kProbe: {
      bool is_block = i.imm == static_cast<uint64_t>(ProbeKind::kBlock) && i.body == 0;
      return is_block && args.empty() && i.aux >= 1 && i.aux <= f_.block_sites;
    }
    default: return false;
  }
}

bool Verifier::is_plain_access(const Inst& i, Shape shape) const {
  constexpr uint8_t kAnyClass = alias_class(kAliasClasses - 1);
  bool load = shape == Shape::kLoad;
  uint8_t allowed = kMemTraps | kAnyClass | (load ? kMemInvariant : 0);
  if (i.flags & kMemTraps) allowed |= kMemFenced;
  if ((i.flags & ~allowed) != 0 || i.imm > UINT32_MAX || i.edge_count != 0) return false;
  auto args = f_.args(i);
  size_t base = load ? 0 : 1;
  if (args.size() < base + 1 || args.size() > base + 2) return false;
  auto is = [&](size_t n, uint8_t mask) { return (mask_of(f_.type_of(args[n])) & mask) != 0; };
  return is(base, kMaskRef | kMaskI64) && (load || f_.type_of(args[0]) == i.type) &&
         (args.size() == base + 1 || is(base + 1, kMaskInt));
}

bool Verifier::is_plain_branch(const Inst& i, Shape shape) const {
  if (shape != Shape::kJump && shape != Shape::kBranch) return false;
  auto args = f_.args(i);
  uint32_t ways = shape == Shape::kJump ? 1 : 2;
  if (i.edge_count != ways || args.size() != ways - 1) return false;
  return (args.empty() || f_.type_of(args[0]) == Type::kI32) && edges_fit(i);
}

// Returns whether the arguments of each edge fit the parameters of its target.
bool Verifier::edges_fit(const Inst& i) const {
  for (const Edge& e : f_.edges_of(i)) {
    if (!fits(e)) return false;
  }
  return true;
}

bool Verifier::fits(const Edge& e) const {
  auto params = f_.params(e.to);
  auto args = f_.list(e.args);
  if (params.size() != args.size()) return false;
  for (size_t n = 0; n < args.size(); ++n) {
    if (f_.type_of(args[n]) != f_.type_of(params[n])) return false;
  }
  return true;
}

void Verifier::check_inst(Block b, const Inst& i) {
  if (!has_known_type(i) || !is_plain(i)) check_inst_slow(b, i);
}

bool Verifier::has_known_type(const Inst& i) const {
  return (info(i.op).types & mask_of(i.type)) != 0;
}

void Verifier::check_inst_slow(Block b, const Inst& i) {
  if (!has_known_type(i)) {
    return report(b, i,
                  std::string("there is no ") + info(i.op).text + " of type " + type_name(i.type));
  }
  check_shape_operands(b, i);
  check_immediates(b, i);
  check_flags(b, i);
  check_sites(b, i);
  check_edge_args(b, i);
}

bool Verifier::want_count(Block b, const Inst& i, size_t low, size_t high) {
  if (i.args.size >= low && i.args.size <= high) return true;
  std::string wanted = std::to_string(low);
  if (high != low) wanted += " to " + std::to_string(high);
  report(b, i, std::to_string(i.args.size) + " operands instead of " + wanted);
  return false;
}

void Verifier::want_type(Block b, const Inst& i, size_t operand, uint8_t mask) {
  Type t = f_.type_of(f_.args(i)[operand]);
  if (mask & mask_of(t)) return;
  report(b, i,
         "operand " + std::to_string(operand + 1) + " is " + type_name(t) + ", not " +
             type_list(mask));
}

void Verifier::want(Block b, const Inst& i, std::initializer_list<Type> types) {
  if (!want_count(b, i, types.size(), types.size())) return;
  size_t n = 0;
  for (Type t : types) want_type(b, i, n++, mask_of(t));
}

void Verifier::check_shape_operands(Block b, const Inst& i) {
  Type result = f_.signature().result;
  switch (info(i.op).shape) {
    case Shape::kConst:
    case Shape::kKnownCount:
    case Shape::kFrameMemory:
    case Shape::kJump:
    case Shape::kTrap: return want(b, i, {});
    case Shape::kUnary:
    case Shape::kTest: return want(b, i, {i.type});
    case Shape::kBinary:
    case Shape::kCompare: return want(b, i, {i.type, i.type});
    case Shape::kSelect: return want(b, i, {Type::kI32, i.type, i.type});
    case Shape::kConvert:
      if (want_count(b, i, 1, 1)) want_type(b, i, 0, conversion_sources(i.op, i.type));
      return;
    case Shape::kLoad: return check_address(b, i, 0);
    case Shape::kStore: return check_address(b, i, 1);
    case Shape::kCall:
    case Shape::kCallIndirect:
    case Shape::kCallHost: return check_call(b, i);
    case Shape::kBranch:
    case Shape::kSwitch:
    case Shape::kTrapIf: return want(b, i, {Type::kI32});
    case Shape::kGuard: return check_guard(b, i);
    case Shape::kReturn: return result == Type::kNone ? want(b, i, {}) : want(b, i, {result});
    case Shape::kProbe: return check_probe(b, i);
    case Shape::kBulk: return want(b, i, {Type::kI64, Type::kI64, Type::kI64});
    case Shape::kLoopHeader:
    case Shape::kFrameState: return;
  }
}

// A guard of optimized code also has the values of the frames that it exits to.
void Verifier::check_guard(Block b, const Inst& i) {
  if (i.imm == 0 || stage_ == Stage::kBuilt) {
    if (i.imm != 0) report(b, i, "a guard leaves for frames before there are any");
    return want(b, i, {Type::kI32});
  }
  if (i.imm > f_.deopts.size())
    return report(b, i, "what the guard leaves for is not in the table");
  size_t values = 1;
  for (const DeoptFrame& frame : f_.deopts[i.imm - 1].frames) {
    values += frame.slots.size() + frame.host_slots;
  }
  if (want_count(b, i, values, values)) want_type(b, i, 0, mask_of(Type::kI32));
}

// Optimized code observes nothing, so its probes have lost their values.
void Verifier::check_probe(Block b, const Inst& i) {
  uint8_t types = kMaskAny;
  bool needs = stage_ == Stage::kBuilt;
  if (stage_ == Stage::kTransformed && is_remnant(i)) {
    want_count(b, i, 0, 0);
    return;
  }
  if (stage_ == Stage::kTransformed && is_rounds(i)) {
    if (want_count(b, i, 1, 1)) want_type(b, i, 0, mask_of(Type::kI64));
    return;
  }
  switch (probe_kind(i)) {
    case ProbeKind::kBlock: want_count(b, i, 0, 0); return;
    case ProbeKind::kEdge:
    case ProbeKind::kLoop: return report(b, i, "the library places these itself");
    case ProbeKind::kCallTarget: types = kMaskRef | kMaskI64; break;
    case ProbeKind::kCounter:
    case ProbeKind::kRange: types = kMaskInt; break;
    case ProbeKind::kValue:
    case ProbeKind::kLog:
    case ProbeKind::kGauge: break;
    default: needs = false;
  }
  if (want_count(b, i, needs ? 1 : 0, 1) && i.args.size == 1) want_type(b, i, 0, types);
}

// An address consists of the operands from `first` on; a store has its value before them.
void Verifier::check_address(Block b, const Inst& i, size_t first) {
  if (!want_count(b, i, first + 1, first + 2)) return;
  if (first == 1) want_type(b, i, 0, mask_of(i.type));
  want_type(b, i, first, kMaskRef | kMaskI64);
  if (i.args.size > first + 1) want_type(b, i, first + 1, kMaskInt);
}

void Verifier::check_call(Block b, const Inst& i) {
  if (i.type != f_.signature_of(i).result) {
    return report(b, i,
                  std::string("the type of the call is ") + type_name(i.type) +
                      ", not the result of its signature");
  }
  if (i.op == Opcode::kCallIndirect) {
    if (!want_count(b, i, 1, kAnyCount)) return;
    want_type(b, i, 0, kMaskRef);
    return check_call_args(b, i, 1);
  }
  bool host = i.op == Opcode::kCallHost;
  if (i.imm >= (host ? f_.host_callees.size() : f_.callees.size())) {
    return report(b, i, "the callee is not in the table");
  }
  SignatureId s = host ? f_.host_callees[i.imm].signature : f_.callees[i.imm].signature;
  if (s.index() != i.aux) report(b, i, "the callee has another signature");
  check_call_args(b, i, 0);
}

void Verifier::check_call_args(Block b, const Inst& i, size_t first) {
  const Signature& s = f_.signature_of(i);
  size_t count = first + s.params.size();
  if (!want_count(b, i, count, count)) return;
  for (size_t n = 0; n < s.params.size(); ++n) want_type(b, i, first + n, mask_of(s.params[n]));
}

void Verifier::check_immediates(Block b, const Inst& i) {
  switch (info(i.op).shape) {
    case Shape::kConst:
      if (clip(i.type, i.imm) != i.imm) report(b, i, "bits above the width of the constant");
      return;
    case Shape::kLoad:
    case Shape::kStore:
      if (i.imm > UINT32_MAX) report(b, i, "the offset does not fit into 32 bits");
      return;
    case Shape::kBulk:
      if (i.imm != 1 && i.imm != 2 && i.imm != 4 && i.imm != 8) {
        report(b, i, "elements have 1, 2, 4 or 8 bytes");
      }
      return;
    case Shape::kFrameMemory:
      if (b != f_.entry() || find_frame_memory(f_) != &i) {
        report(b, i, "the frame's memory is asked for once, in the entry");
      }
      if (i.imm % 8 != 0 || i.imm > kMostFrameMemory) {
        report(b, i, "the frame's memory has a multiple of 8 bytes, and 1 MiB at most");
      }
      return;
    case Shape::kTrap:
    case Shape::kTrapIf:
      if (i.aux == 0 || i.aux >= kTrapCount) report(b, i, "unknown trap code");
      return;
    case Shape::kGuard:
      if (i.aux >= kGuardReasonCount) report(b, i, "unknown guard reason");
      return;
    case Shape::kLoopHeader:
      if (i.aux >= f_.loop_count) report(b, i, "the loop's number is out of range");
      [[fallthrough]];
    case Shape::kFrameState:
      if (i.imm > UINT32_MAX) report(b, i, "the pc does not fit into 32 bits");
      return;
    case Shape::kProbe: {
      auto kind = static_cast<uint32_t>(i.imm);
      bool known = kind >= static_cast<uint32_t>(ProbeKind::kBlock) &&
                   kind <= static_cast<uint32_t>(kLastProbeKind);
      if (!known) report(b, i, "unknown probe kind");
      bool log = probe_kind(i) == ProbeKind::kLog;
      bool share = (resumes(i) || is_remnant(i) || is_rounds(i)) && probe_tag(i) <= kWholeShare;
      if (known && !log && !share && probe_tag(i) != 0) report(b, i, "only log probes have a tag");
      return;
    }
    default: return;
  }
}

void Verifier::check_flags(Block b, const Inst& i) {
  uint8_t allowed = kMemNone;
  constexpr uint8_t kAnyClass = alias_class(kAliasClasses - 1);
  if (info(i.op).shape == Shape::kLoad) allowed = kMemTraps | kMemInvariant | kAnyClass;
  if (info(i.op).shape == Shape::kStore) allowed = kMemTraps | kAnyClass;
  if (is_fuel_access(f_, i)) allowed |= kMemFuel;
  if (allowed & i.flags & kMemTraps) allowed |= kMemFenced;
  if (info(i.op).shape == Shape::kBulk) allowed = kMemTraps | kAnyClass;
  if (info(i.op).shape == Shape::kCallHost) allowed = bulk_flags(f_, i) | kCallMayTrap;
  if (info(i.op).shape == Shape::kCallIndirect) allowed = kCallMayTrap;
  if (is_block_probe(i) && stage_ == Stage::kTransformed) allowed = kProbeResumes;
  if (i.op == Opcode::kProbe && !is_block_probe(i)) allowed = kProbeOwn;
  if (stage_ == Stage::kTransformed && is_remnant(i)) allowed = kProbeRemnant;
  if (stage_ == Stage::kTransformed && is_rounds(i)) allowed = kProbeRounds;
  if (stage_ == Stage::kTransformed && is_tally(i)) allowed = kProbeTally;
  bool own_value = allowed == kProbeOwn && (i.flags & kProbeOwn) != 0 &&
                   probe_kind(i) == ProbeKind::kValue && i.args.size <= 1;
  if (own_value) allowed |= kProbeTurns;
  if (allowed & i.flags & kProbeTurns) allowed |= kProbeOfBranch;
  if (i.flags & ~allowed) report(b, i, "a flag that the operation does not have");
}

void Verifier::check_sites(Block b, const Inst& i) {
  Shape shape = info(i.op).shape;
  bool is_call =
      shape == Shape::kCall || shape == Shape::kCallIndirect || shape == Shape::kCallHost;
  if (i.body > f_.inlined.size()) return report(b, i, "the inlined body is not in the table");
  uint32_t count = i.body == 0 ? f_.site_count : f_.inlined[i.body - 1].site_count;
  uint32_t blocks = i.body == 0 ? f_.block_sites : f_.inlined[i.body - 1].block_sites;
  bool in_range = i.site >= 1 && i.site <= count;
  if (is_call && !in_range) report(b, i, "the call's site is out of range");
  if (!is_call && i.site != 0) report(b, i, "only calls have a site of this kind");
  if (i.op == Opcode::kKnownCount) return check_known_count(b, i, count);
  if (shape != Shape::kProbe) return;
  bool block = is_block_probe(i);
  if (i.aux < 1 || i.aux > count) report(b, i, "the probe's site is out of range");
  if (block && i.aux > blocks) report(b, i, "the site is none of a block");
}

// Site 0: its probe is unreachable. Passes may have removed the probe of another site.
void Verifier::check_known_count(Block b, const Inst& i, uint32_t count) {
  if (i.aux > count) return report(b, i, "the probe's site is out of range");
  if (i.aux == 0 || stage_ == Stage::kTransformed) return;
  if (counters_.empty()) {
    counters_.resize(f_.site_count + size_t{1});
    for (const Inst& probe : f_.insts) {
      if (counts_up(probe) && probe.aux <= count) counters_[probe.aux] = true;
    }
  }
  if (!counters_[i.aux]) report(b, i, "the site is none of a counter, a hit or a gauge");
}

void Verifier::check_edge_args(Block b, const Inst& i) {
  size_t low = 0, high = 0;
  if (i.op == Opcode::kJump) low = high = 1;
  if (i.op == Opcode::kBranch) low = high = 2;
  if (i.op == Opcode::kSwitch) low = 1, high = kAnyCount;
  if (i.edge_count < low || i.edge_count > high) return report(b, i, "a wrong number of edges");
  for (const Edge& e : f_.edges_of(i)) {
    if (fits(e)) continue;
    report(b, i, "the arguments do not fit the parameters of " + printer().block(e.to));
  }
}

}  // namespace uptier::jit
