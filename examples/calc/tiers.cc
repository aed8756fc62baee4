#include "tiers.h"

#include <array>
#include <utility>

#include "emit.h"
#include "interpret.h"

namespace calc {
namespace {

using uptier::MethodId;
using uptier::Runtime;

// ---- Tier::kHost: C functions with the signatures of methods, one for each number of arguments.

Val call_interpreted(Closure* f, const Val* args) {
  Vm& vm = *f->proto->vm;
  vm.tiers->count_call(*f->proto);
  return interpret(vm, Interpreter::kTiered, f, args);
}

template <size_t>
using Argument = Val;

template <size_t... I>
Val host_entry(Closure* f, Argument<I>... args) {
  const Val all[] = {args..., 0};
  return call_interpreted(f, all);
}

template <size_t... I>
const void* entry_of(std::index_sequence<I...>) {
  return reinterpret_cast<const void*>(&host_entry<I...>);
}

const void* host_entry_of(uint32_t params) {
  static const std::array<const void*, kMaxParams + 1> kEntries = {
      entry_of(std::make_index_sequence<0>()), entry_of(std::make_index_sequence<1>()),
      entry_of(std::make_index_sequence<2>()), entry_of(std::make_index_sequence<3>()),
      entry_of(std::make_index_sequence<4>()), entry_of(std::make_index_sequence<5>()),
      entry_of(std::make_index_sequence<6>())};
  return kEntries[params];
}

// Where compiled code gives its frames back: slot 0 is the closure, which knows all else.
uint64_t host_resume(const uptier::HostFrame* frame) {
  auto* f = reinterpret_cast<Closure*>(frame->slots[0]);
  return f->proto->vm->tiers->leave(*frame);
}

}  // namespace

// ---- Methods

uptier::Status Tiers::add_all(Runtime& runtime) {
  runtime_ = &runtime;
  vm_.tiers = this;
  vm_.raise = [] { Runtime::raise(uptier::TrapCode::kHost); };
  vm_.loop_event = [](Vm& vm, Closure* f, const Val* r, const Instr* header, Val& result) {
    return vm.tiers->loop_event(f, r, header, result);
  };
  functions_.resize(vm_.code.protos.size());
  for (auto& p : vm_.code.protos) {
    auto m = add_method(*p, true);
    if (!m) return m.error();
    p->vm = &vm_;
    p->entry = runtime_->entry_address(*m);
    functions_[p->index].method = *m;
    look_again(*p);
  }
  return {};
}

uptier::Result<MethodId> Tiers::add_method(Proto& p, bool interpreted) {
  Function& f = functions_[p.index];
  uptier::MethodInfo info;
  info.key = {1, p.index | f.plans << 20};
  info.name = p.name + (f.plans == 0 ? "" : "#" + std::to_string(f.plans + 1));
  info.signature = {std::vector<uptier::Type>(p.params + 1, uptier::Type::kI64),
                    uptier::Type::kI64};
  info.host_entry = interpreted ? host_entry_of(p.params) : nullptr;
  info.host_may_trap = interpreted;
  info.host_resume = host_resume;
  auto m = runtime_->add_method(*this, std::move(info));
  if (!m) return m;
  std::lock_guard lock(mutex_);
  methods_.resize(std::max<size_t>(methods_.size(), m->index() + 1));
  methods_[m->index()] = {&p, f.plans++, nullptr};
  return m;
}

void Tiers::run() {
  Closure* main = vm_.heap.closure(vm_.code.protos[0].get(), 0);
  const uint64_t args[] = {reinterpret_cast<uintptr_t>(main)};
  uptier::Outcome o = runtime_->invoke(functions_[0].method, args);
  if (o.ok() || vm_.failed) return;
  vm_.failed = true;
  vm_.error = uptier::trap_text(o.trap.code);
}

std::string Tiers::ir(std::string_view name) {
  std::string text;
  for (auto& p : vm_.code.protos) {
    if (p->name != name) continue;
    auto ir = runtime_->ir(functions_[p->index].method);
    text += ir ? *ir : ir.error().message + "\n";
  }
  return text;
}

std::string Tiers::summary() {
  std::lock_guard lock(mutex_);
  std::string text;
  for (auto& p : vm_.code.protos) {
    uint32_t plans = 0, exits = 0;
    bool generic = false;
    for (const Method& m : methods_) {
      if (m.proto != p.get() || m.plan == nullptr) continue;
      ++plans;
      exits += m.plan->exits;
      generic |= !m.plan->speculate;
    }
    if (exits == 0 && plans < 2) continue;
    text += "speculation: " + p->name + ": plans " + std::to_string(plans) + ", exits " +
            std::to_string(exits) + (generic ? ", now generic" : "") + "\n";
  }
  return text;
}

// A held tier takes over from the interpreter once that has seen some calls.
void Tiers::count_call(Proto& p) {
  Function& f = functions_[p.index];
  if (!held_ || ++f.calls != kWarmCalls) return;
  auto m = add_method(p, false);
  if (!m) return;
  f.method = *m;
  p.entry = runtime_->entry_address(*m);
}

// ---- Plans

Plan& Tiers::plan_of(MethodId m) {
  std::lock_guard lock(mutex_);
  Method& method = methods_[m.index()];
  if (method.plan == nullptr) {
    method.plan = freeze(vm_, *method.proto, method.number, method.number + 1 < kPlans);
    Emitter(vm_, *method.plan, nullptr).infer();
  }
  return *method.plan;
}

uptier::Status Tiers::build(MethodId m, uptier::FunctionBuilder& b) {
  Emitter(vm_, plan_of(m), &b).emit();
  return {};
}

// ---- Loops

// The runtime's countdown begins at once; a loop that is new has nothing to say yet.
void Tiers::look_again(Proto& p) {
  Function& f = functions_[p.index];
  f.patience = kFirstLook;
  p.loop_countdown = &f.patience;
}

bool Tiers::loop_event(Closure* f, const Val* r, const Instr* header, Val& result) {
  Proto& p = *f->proto;
  Function& function = functions_[p.index];
  if (p.loop_countdown == &function.patience) {
    p.loop_countdown = runtime_->loop_countdown(function.method);
    if (*p.loop_countdown > 0) return false;
  }
  Plan& plan = plan_of(function.method);
  const Loop& loop = plan.loops.at(vm_.place(header) - p.begin);
  std::vector<uint64_t> frame, args(p.params + 1);
  args[0] = reinterpret_cast<uintptr_t>(f);
  bool fits = loop.id >= 0;
  for (size_t k = 0; fits && k < loop.frame.registers.size(); ++k) {
    auto [reg, type] = loop.frame.registers[k];
    frame.push_back(0);
    fits = to_form(type, r[reg], frame.back());
  }
  if (!fits) {  // the plan does not know this loop, or not with such values
    vm_.see(header, kNoHoist);
    replan(p);
    return false;
  }
  for (uint8_t reg : loop.carried) {
    frame.push_back(as<Array>(r[reg])->length);
    frame.push_back(reinterpret_cast<uintptr_t>(as<Array>(r[reg])->data));
  }
  auto id = uptier::LoopId(static_cast<uint32_t>(loop.id));
  auto o = runtime_->osr_enter(function.method, id, args, frame.data());
  if (!o) return false;
  result = o->bits;
  if (o->ok()) return true;
  if (!vm_.failed) vm_.error = uptier::trap_text(o->trap.code);
  vm_.failed = true;
  Runtime::raise(o->trap.code, o->trap.detail);
  return true;
}

// ---- Guards

// No destructor may be wanted here: an error drops this frame with all others up to `invoke`.
Val Tiers::leave(const uptier::HostFrame& frame) {
  Plan& plan = plan_of(frame.method);
  Proto& p = *plan.proto;
  const State& s = plan.states[frame.pc];
  auto* f = reinterpret_cast<Closure*>(frame.slots[0]);
  Val* r = open_window(vm_, f);
  if (r == nullptr) return 0;
  for (size_t k = 0; k < s.registers.size(); ++k) {
    r[s.registers[k].first] = from_form(s.registers[k].second, frame.slots[k + 1]);
  }
  // The interpreter will see what surprised the guard, but for what is over.
  if (s.learn_at != State::kNowhere) {
    auto reg = static_cast<size_t>(s.learn_of);
    bool parameter = s.learn_at == State::kParameter;
    note(parameter ? vm_.code.params_seen[p.index * kMaxParams + reg]
                   : vm_.code.seen[p.begin + s.learn_at],
         s.learn | (s.learn_of < 0 ? 0u : unsigned{kind_of(r[reg])}));
  }
  if (++plan.exits == kExits && functions_[p.index].method == frame.method) replan(p);
  return resume(vm_, f, r, vm_.code.instrs.data() + p.begin + s.pc);
}

// Gives a function a method with a plan that is still to be made. Old code runs to its end where
// it is under way; nothing calls it any more.
void Tiers::replan(Proto& p) {
  Function& f = functions_[p.index];
  look_again(p);
  if (f.plans == kPlans) return;
  auto m = add_method(p, !held_);
  if (!m) return;
  MethodId old[] = {f.method};
  f.method = *m;
  p.entry = runtime_->entry_address(*m);
  runtime_->remove_methods(old);
}

}  // namespace calc
