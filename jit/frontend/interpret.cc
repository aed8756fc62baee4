#include "jit/frontend/interpret.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jit/analysis/flow_graph.h"
#include "jit/ir/fuel_flag.h"
#include "jit/ir/semantics.h"
#include "jit/ir/tally.h"
#include "sampler/fuel.h"

namespace uptier::jit {

Interpreter::Interpreter(const Module& module, InterpretOptions options)
    : module_(module),
      options_(std::move(options)),
      counts_(module.functions.size()),
      forests_(module.functions.size()) {}

InterpretOutcome Interpreter::run(MethodId method, std::span<const uint64_t> args) {
  frames_.clear();
  outcome_ = {};
  running_ = true;
  last_step_ = steps_ + options_.step_limit;
  if (method.number() < module_.functions.size()) {
    enter(method, args, Value::none(), nullptr);
  } else {
    stop("the module has no such method");
  }
  while (running_) step();
  return std::move(outcome_);
}

// ---- Frames -------------------------------------------------------------------------------------

void Interpreter::enter(MethodId m, std::span<const uint64_t> args, Value result_to,
                        const Inst* call) {
  const Function& f = module_.functions[m.index()];
  const Signature& s = f.signature();
  if (args.size() != s.params.size()) return stop("@" + f.name + ": a wrong number of arguments");
  if (call != nullptr && !(function().signature_of(*call) == s)) {
    return stop("@" + f.name + " is called with another signature");
  }
  if (frames_.size() >= options_.depth_limit) {
    if (call == nullptr) return stop("a depth limit of 0");
    return trap(*call, TrapCode::kStackExhausted);
  }
  if (call != nullptr && options_.observer != nullptr) {
    options_.observer->called(frame().method, call->site, m);
  }
  frames_.push_back({m, std::vector<uint64_t>(f.values.size()), f.entry(), 0, result_to, {}});
  auto params = f.params(f.entry());
  for (size_t i = 0; i < params.size(); ++i) {
    frame().values[params[i].index()] = clip(s.params[i], args[i]);
  }
  Counts& c = counts_[m.index()];
  c.sites.resize(f.site_count);
  c.loops.resize(f.loop_count);
  ++c.entries;
  if (options_.observer != nullptr) options_.observer->entered(m, LoopId(f.loop_count));
  if (!c.numbers.empty() || f.edges.empty()) return;
  c.numbers = edge_numbers(f);
  c.edges.resize(*std::max_element(c.numbers.begin(), c.numbers.end()));
}

void Interpreter::follow(const Edge& e) {
  const Function& f = function();
  Counts& c = counts_[frame().method.index()];
  ++c.edges[c.numbers[static_cast<size_t>(&e - f.edges.data())] - 1];
  // All arguments are read before any parameter is written: parameters may be swapped.
  std::vector<uint64_t> args = words(f.list(e.args));
  auto params = f.params(e.to);
  for (size_t i = 0; i < params.size(); ++i) frame().values[params[i].index()] = args[i];
  if (options_.observer != nullptr) {
    LoopCrossing c = crossing(forest(), frame().block, e.to);
    for (LoopId l : c.left) options_.observer->left(frame().method, l);
    if (c.entered.valid()) options_.observer->entered(frame().method, c.entered);
  }
  frame().block = e.to;
  frame().position = 0;
  frame().frame_state = {};
}

void Interpreter::leave(const Inst& i) {
  uint64_t bits = i.args.size == 0 ? 0 : get(i, 0);
  Value to = frame().result_to;
  if (options_.observer != nullptr) {
    const LoopForest& loops = forest();
    LoopId l = loops.innermost[frame().block.index()];
    for (; l.valid(); l = loops.loop(l).parent) options_.observer->left(frame().method, l);
    options_.observer->left(frame().method, LoopId(function().loop_count));
  }
  frames_.pop_back();
  if (!frames_.empty()) return set(to, bits);
  outcome_.kind = InterpretOutcome::Kind::kReturned;
  outcome_.bits = bits;
  running_ = false;
}

void Interpreter::trap(const Inst& i, TrapCode code) {
  outcome_.kind = InterpretOutcome::Kind::kTrapped;
  outcome_.trap = code;
  outcome_.method = frame().method;
  outcome_.location = i.loc;
  running_ = false;
}

void Interpreter::stop(std::string why) {
  outcome_.kind = InterpretOutcome::Kind::kStopped;
  outcome_.why = std::move(why);
  running_ = false;
}

void Interpreter::set(Value v, uint64_t bits) {
  if (v.valid()) frame().values[v.index()] = bits;
}

std::vector<uint64_t> Interpreter::words(std::span<const Value> values) {
  std::vector<uint64_t> out;
  for (Value v : values) out.push_back(frame().values[v.index()]);
  return out;
}

// ---- Instructions -------------------------------------------------------------------------------

void Interpreter::step() {
  if (steps_ == last_step_) return stop("the step limit was reached");
  ++steps_;
  const Function& f = function();
  InstId id = f.block(frame().block).insts[frame().position++];
  if (f.inst(id).op == Opcode::kFrameState) frame().frame_state = id;
  execute(f.inst(id));
}

void Interpreter::execute(const Inst& i) {
  switch (info(i.op).shape) {
    case Shape::kConst: return set(i.result, i.imm);
    case Shape::kKnownCount: return set(i.result, 0);
    case Shape::kFrameMemory:
      frame().memory.assign(i.imm / 8, 0);
      return set(i.result, reinterpret_cast<uintptr_t>(frame().memory.data()));
    case Shape::kUnary:
    case Shape::kBinary:
    case Shape::kCompare:
    case Shape::kTest:
    case Shape::kConvert:
    case Shape::kSelect: return evaluate_inst(i);
    case Shape::kLoad: return load(i);
    case Shape::kStore: return store(i);
    case Shape::kCall: return call(i);
    case Shape::kCallIndirect: return call_indirect(i);
    case Shape::kCallHost: return call_host(i);
    case Shape::kJump: return follow(function().edges_of(i)[0]);
    case Shape::kBranch: return follow(function().edges_of(i)[get(i, 0) != 0 ? 0 : 1]);
    case Shape::kSwitch: {
      uint64_t last = i.edge_count - 1, index = get(i, 0);
      return follow(function().edges_of(i)[index < last ? index : last]);
    }
    case Shape::kReturn: return leave(i);
    case Shape::kTrap: return trap(i, static_cast<TrapCode>(i.aux));
    case Shape::kTrapIf:
      if (get(i, 0) != 0) trap(i, static_cast<TrapCode>(i.aux));
      return;
    case Shape::kGuard:
      if (get(i, 0) == 0) fail_guard(i);
      return;
    case Shape::kBulk: return bulk(i);
    case Shape::kLoopHeader:
    case Shape::kProbe: return observe(i);
    case Shape::kFrameState: return;
  }
}

void Interpreter::evaluate_inst(const Inst& i) {
  Type source = function().type_of(at(i, 0));
  Evaluation e = evaluate(i.op, i.type, source, words(function().args(i)));
  if (e.trap != TrapCode::kNone) return trap(i, e.trap);
  set(i.result, e.bits);
}

// Counts a site of an inlined body for its method.
void Interpreter::count_rounds(const Inst& i) {
  if (share_of(i) == 1) count_site(i.body, i.aux, get(i, 0));
}

void Interpreter::count_site(uint32_t body, SiteId site, uint64_t times) {
  const Function& f = function();
  MethodId m = body == 0 ? frame().method : f.inlined[body - 1].method;
  if (m.index() >= counts_.size()) return;
  std::vector<uint64_t>& sites = counts_[m.index()].sites;
  uint32_t count = body == 0 ? f.site_count : f.inlined[body - 1].site_count;
  if (sites.size() < count) sites.resize(count);
  sites[site - 1] += times;
}

void Interpreter::observe(const Inst& i) {
  if (is_tally(i) || is_remnant(i)) return;  // neither is an execution of a site
  if (is_rounds(i)) return count_rounds(i);
  if (i.op == Opcode::kLoopHeader) {
    ++counts_[frame().method.index()].loops[i.aux];
  } else if (!is_block_probe(i) || !resumes(i)) {
    count_site(i.body, i.aux);
  }
  if (options_.observer == nullptr) return;
  if (i.op == Opcode::kLoopHeader) {
    options_.observer->iterated(frame().method, LoopId(i.aux));
  } else if (is_block_probe(i) && i.body == 0 && !resumes(i)) {
    options_.observer->block(frame().method, i.aux);
  } else if (probe_kind(i) != ProbeKind::kBlock) {
    Type t = i.args.size == 0 ? Type::kNone : function().type_of(at(i, 0));
    uint64_t seen = i.args.size == 0 ? 0 : observed_bits(t, get(i, 0));
    options_.observer->probe(frame().method, i, seen);
  }
}

const LoopForest& Interpreter::forest() {
  auto& f = forests_[frame().method.index()];
  if (!f) f = find_loop_forest(function());
  return *f;
}

uint64_t observed_bits(Type t, uint64_t bits) {
  if (t == Type::kI32) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(static_cast<uint32_t>(bits))});
  }
  if (t != Type::kF32) return bits;
  return std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
}

void Interpreter::fail_guard(const Inst& i) {
  outcome_.reason = static_cast<GuardReason>(i.aux);
  // A guard that exits at the start of a block has no state.
  if (InstId id = frame().frame_state; id.valid()) {
    const Inst& state = function().inst(id);
    outcome_.pc = state.imm;
    outcome_.inline_depth = state.aux;
    outcome_.slots = words(function().args(state));
  }
  trap(i, TrapCode::kGuardFailed);
}

// ---- Memory -------------------------------------------------------------------------------------

void* Interpreter::place(const Inst& i, size_t first, unsigned size, bool write) {
  if (is_fuel(i)) return sampler::fuel_word();
  uint64_t address = get(i, first) + i.imm;
  if (i.args.size > first + 1) address += get(i, first + 1);
  return place_at(i, address, size, write);
}

void* Interpreter::place_at(const Inst& i, uint64_t address, unsigned size, bool write) {
  auto inside = [&](const MemoryRange& r) {
    return address >= r.base && size <= r.size && address - r.base <= r.size - size &&
           (r.writable || !write);
  };
  const std::vector<uint64_t>& own = frame().memory;
  if (inside({reinterpret_cast<uintptr_t>(own.data()), own.size() * sizeof(uint64_t)}) ||
      std::ranges::any_of(options_.memory, inside)) {
    return reinterpret_cast<void*>(address);
  }
  if (i.flags & kMemTraps) {
    trap(i, TrapCode::kOutOfBoundsMemory);
  } else {
    stop("an access without kMemTraps outside of the given memory");
  }
  return nullptr;
}

void Interpreter::load(const Inst& i) {
  unsigned size = access_size(i.op, i.type);
  const void* from = place(i, 0, size, false);
  if (from == nullptr) return;
  uint64_t raw = 0;
  std::memcpy(&raw, from, size);
  set(i.result, extend_loaded(i.op, i.type, raw));
}

void Interpreter::store(const Inst& i) {
  unsigned size = access_size(i.op, i.type);
  void* to = place(i, 1, size, true);
  if (to == nullptr) return;
  uint64_t raw = get(i, 0);
  std::memcpy(to, &raw, size);
}

// Each element counts as a step, as an iteration of the loop would have.
void Interpreter::bulk(const Inst& i) {
  auto size = static_cast<unsigned>(i.imm);
  uint64_t raw = get(i, 0);
  for (uint64_t n = 0; n < get(i, 2); ++n, ++steps_) {
    if (steps_ >= last_step_) return stop("the step limit was reached");
    if (i.op == Opcode::kCopy) {
      const void* from = place_at(i, get(i, 0) + n * size, size, false);
      if (from == nullptr) return;
      std::memcpy(&raw, from, size);
    }
    void* to = place_at(i, get(i, 1) + n * size, size, true);
    if (to == nullptr) return;
    std::memcpy(to, &raw, size);
  }
}

// ---- Calls --------------------------------------------------------------------------------------

void Interpreter::finish(const Inst& i, OutsideResult r) {
  if (r.trap != TrapCode::kNone) return trap(i, r.trap);
  set(i.result, clip(i.type, r.bits));
}

void Interpreter::call(const Inst& i) {
  count_site(i.body, i.site);
  MethodId m = function().callees[i.imm].method;
  std::vector<uint64_t> args = words(function().args(i));
  if (m.index() < module_.functions.size()) return enter(m, args, i.result, &i);
  if (!options_.call_method) return stop("a call of a method outside of the module");
  finish(i, options_.call_method(m, args));
}

void Interpreter::call_indirect(const Inst& i) {
  count_site(i.body, i.site);
  std::vector<uint64_t> args = words(function().args(i));
  if (options_.observer != nullptr) { options_.observer->target(frame().method, i.site, args[0]); }
  uint64_t offset = args[0] - kMethodBase;
  bool known = offset % 16 == 0 && offset / 16 < module_.functions.size();
  if (!known) return stop("an indirect call of something that is no method");
  enter(MethodId(static_cast<uint32_t>(offset / 16)), std::span(args).subspan(1), i.result, &i);
}

void Interpreter::call_host(const Inst& i) {
  count_site(i.body, i.site);
  const HostCallee& callee = function().host_callees[i.imm];
  if (!options_.call_host) return stop("a call of host function @" + callee.name);
  OutsideResult r = options_.call_host(callee, words(function().args(i)));
  if (!(i.flags & kCallMayTrap) && r.trap != TrapCode::kNone) {
    return stop("host function @" + callee.name + " trapped without may_trap");
  }
  finish(i, r);
}

}  // namespace uptier::jit
