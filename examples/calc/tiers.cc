#include "tiers.h"

#include <algorithm>

#include "emit.h"
#include "interpret.h"
#include "uptier/words.h"

namespace calc {
namespace {

// Every method is called with its closure and its arguments.
uint64_t call_interpreted(const uint64_t* words) {
  auto* f = reinterpret_cast<Closure*>(words[0]);
  return interpret(*f->proto->vm, Interpreter::kTiered, f, words + 1);
}

// Compiled code gives its frames back here: slot 0 is the closure, which knows all else.
uint64_t host_resume(const uptier::HostFrame* frame) {
  auto* f = reinterpret_cast<Closure*>(frame->slots[0]);
  Vm& vm = *f->proto->vm;
  const size_t open_calls = vm.trace.open_calls();
  const Val result = vm.tiers->leave(*frame);
  if (vm.trace.tells_calls()) vm.trace.leave_until(open_calls - 1);
  return result;
}

}  // namespace

// ---- Methods

uptier::Status Tiers::add_all() {
  vm_.tiers = this;
  for (auto& p : vm_.code.protos) {
    p->vm = &vm_;
    if (uptier::Status added = add(p->index); !added) return added;
  }
  return {};
}

uptier::MethodInfo Tiers::info(uint32_t function) {
  const Proto& p = proto(function);
  uptier::MethodInfo info;
  info.key = {1, function};
  info.name = p.name;
  info.signature = uptier::words_signature(p.params + 1);
  info.host_entry = uptier::host_entry<call_interpreted>(p.params + 1);
  info.host_may_trap = true;
  info.host_resume = host_resume;
  return info;
}

void Tiers::entry_changed(uint32_t function, const void* entry) { proto(function).entry = entry; }

void Tiers::countdown_changed(uint32_t function, uptier::LoopCountdown countdown) {
  proto(function).loop_countdown = countdown;
}

void Tiers::run() {
  Closure* main = vm_.heap.closure(vm_.code.protos[0].get(), 0);
  const uint64_t args[] = {reinterpret_cast<uintptr_t>(main)};
  uptier::Outcome o = runtime_.invoke(method(0), args);
  if (!o.ok()) trapped(o.trap);
  vm_.trace.leave_until(0);  // an error has dropped the frames of calls
}

// A trap may be no error of the program's own: endless recursion.
void Tiers::trapped(const uptier::Trap& trap) {
  if (!vm_.failed) vm_.error = uptier::trap_text(trap.code);
  vm_.failed = true;
}

std::string Tiers::ir(std::string_view name) {
  std::string text;
  for (auto& p : vm_.code.protos) {
    if (p->name != name) continue;
    auto ir = runtime_.ir(method(p->index));
    text += ir ? *ir : ir.error().message + "\n";
  }
  return text;
}

// ---- Plans

std::unique_ptr<uptier::HostPlan> Tiers::make_plan(uint32_t function, bool guess) {
  return calc::make_plan(vm_, proto(function), guess);
}

void Tiers::describe(uptier::HostPlan& plan, uptier::FunctionBuilder& b) {
  Emitter(vm_, static_cast<Plan&>(plan), b, false).walk();
}

// ---- Frames

bool Tiers::loop_event(Closure* f, const Val* r, const Instr* header, Val& result) {
  Proto& p = *f->proto;
  if (!loop_is_hot(p.index)) return false;
  const auto& loops = plan(method(p.index)).types.loops;
  uint32_t place = vm_.place(header) - p.begin;
  auto loop = std::ranges::find_if(loops, [&](auto& l) { return l.place == place; });
  std::vector<uint64_t> frame, args(p.params + 1);
  args[0] = reinterpret_cast<uintptr_t>(f);
  bool fits = loop != loops.end();
  for (size_t k = 0; fits && k < loop->registers.size(); ++k) {
    auto [reg, type] = loop->registers[k];
    fits = to_form(type, r[reg], frame.emplace_back());
  }
  if (!fits) {  // the plan does not know this loop, or not with such values
    replan(p.index);
    return false;
  }
  uptier::LoopId id(static_cast<uint32_t>(loop - loops.begin()));
  auto o = runtime_.osr_enter(method(p.index), id, args, frame.data());
  if (!o) return false;
  result = o->bits;
  if (o->ok()) return true;
  trapped(o->trap);
  uptier::Runtime::raise(o->trap.code, o->trap.detail);
  return true;
}

// No destructor may be wanted here: an error drops this frame with all others up to `invoke`.
Val Tiers::leave(const uptier::HostFrame& frame) {
  const Plan& from = plan(frame.method);
  Proto& p = *from.proto;
  const auto& state = from.types.guards[frame.pc];
  auto* f = reinterpret_cast<Closure*>(frame.slots[0]);
  Val* r = open_window(vm_, f);
  if (r == nullptr) return 0;
  for (size_t k = 0; k < state.registers.size(); ++k) {
    auto [reg, type] = state.registers[k];
    r[reg] = from_form(type, frame.slots[k + 1]);
  }
  // Notes the value that an instruction has just brought: the interpreter goes on after that
  // instruction and will not see it.
  const Instr* code = vm_.code.instrs.data() + p.begin;
  uint32_t size = p.end - p.begin;
  if (state.note < size) {
    vm_.see(code + state.note, kReached | kind_of(r[code[state.note].a]));
  } else if (state.note != uptier::kNoPlace) {
    note(p.params_seen[state.note - size], kReached | kind_of(r[state.note - size]));
  }
  exited(frame.method);
  return resume(vm_, f, r, code + state.place);
}

}  // namespace calc
