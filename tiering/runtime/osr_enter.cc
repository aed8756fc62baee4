// From a loop of the host's interpreter into compiled code.
//
// The interpreter's frame is left where it is: the rest of the call runs as a call of its own,
// which takes the call's arguments and the address of the host's slots. That code may leave for the
// interpreter again, whose loop comes here: each round is deeper on the stack. What ends it is
// named at may_enter().
#include <vector>

#include "jit/code/routines.h"
#include "profile/base/wall.h"
#include "tiering/model/event_of.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier {

void* Runtime::thread_base() noexcept { return sampler::current_context(); }

uint64_t Runtime::stack_left() noexcept {
  const sampler::ThreadContext* c = sampler::current_context();
  if (c->stack_limit == 0) return UINT64_MAX;
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > c->stack_limit ? here - c->stack_limit : 0;
}

namespace tiering {
namespace {

// What a call takes between the host's frame and that of the code, in optimized builds.
constexpr uint64_t kCallStack = 4096;

// Whether this thread can run code in the place of a loop's interpreter. The code checks the stack
// as well where it calls, but then the call is lost; here the interpreter goes on.
bool may_enter(const sampler::ThreadContext& c, const Version& v) {
  uint64_t frame = v.code == nullptr ? 0 : v.code->tables().frame_size;
  return c.exits_to_host < Runtime::kMostExitsToHost && Runtime::stack_left() >= frame + kCallStack;
}

// Makes the next arrival at one of the method's loops come to osr_enter.
void ask_at_next_arrival(sampler::MethodState& s) noexcept {
  sampler::store_seen(s.iterations, sampler::iterations_so_far(s));
  s.loop_gap = s.loop_countdown = 1;
  s.behind = {};
}

}  // namespace

ptrdiff_t RuntimeImpl::loop_countdown_offset(MethodId m) const noexcept {
  // Nor has a thread of nobody's a word for a method beyond the first block.
  if (!is_method(m) || m.index() >= sampler::kBlockMethods) {
    return offsetof(sampler::ThreadContext, nobodys_countdown);
  }
  return sampler::method_offset(m.index()) + sampler::kLoopCountdownOffset;
}

int32_t* RuntimeImpl::loop_countdown(MethodId m) noexcept {
  return reinterpret_cast<int32_t*>(static_cast<char*>(thread_base()) + loop_countdown_offset(m));
}

uint64_t* RuntimeImpl::counters(MethodId m) noexcept {
  return sampler::current_context()->any_method(m.index()).slab;
}

// Learns which loops a method has before its first compilation.
bool RuntimeImpl::know_loops(Method& m) {
  if (m.has_shape()) return true;
  if (policy_mode_.load(std::memory_order_relaxed) == PolicyMode::kNever) return false;
  jit::StandardFloats floats;
  LookingAround looking(*this);
  CompileTurn turn(turns_, m);
  if (!turn) return false;             // `build` of the method calls it: it is interpreted
  if (!is_method(m.id)) return false;  // removed since it was asked for
  if (m.failed.load(std::memory_order_relaxed)) return false;
  if (m.has_shape()) return true;
  Status s = compiler_->describer().describe_ahead(m);
  if (s) return true;
  std::lock_guard lock(state_mutex_);
  m.last_error.put(s.error().message);
  events_.emit(event_of(EventKind::kFailed, m, s.error().message));
  m.failed.store(true, std::memory_order_relaxed);
  return false;
}

// The interpreter has named a loop that the description does not have.
void RuntimeImpl::report_unknown_loop(Method& m, uint32_t loop, uint32_t loops) {
  std::lock_guard lock(state_mutex_);
  m.last_error.put(
      "osr_enter: loop " + std::to_string(loop) + " of " + std::to_string(loops) +
      ", counted from 0 as FunctionBuilder::loop_header does (the id in C is one more)");
}

// Code that could be entered takes a slot for what the interpreter's frame does not have in it. Once
// a version: a loop that stays interpreted comes here again and again.
void RuntimeImpl::refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken) {
  if (v.frame_refused.exchange(true, std::memory_order_relaxed)) return;
  std::lock_guard lock(state_mutex_);
  m.last_error.put("osr_enter: " + m.info.name + ": slot " + std::to_string(broken.slot) +
                   " of loop " + std::to_string(v.osr_loop.index()) + " was described as " +
                   jit::law_text(broken) + ", which it is not in the frame");
}

// Handles what is due of the schedule where the interpreter has found the countdown so; returns
// whether it is a flush. A burst cannot run here: one that is due is skipped, and one that is under
// way ends, unless all is counted.
bool RuntimeImpl::host_loop_event(Method& m, AttachedThread& t, LoopId loop) {
  sampler::MethodState& s = t.state(m.id);
  uint64_t& random = t.context().random;
  bool in_host = m.plain.load(std::memory_order_relaxed) == nullptr;
  const sampler::Schedule& schedule = in_host ? counting_ : schedule_;
  sampler::Rate rate = rate_of(m);
  bool can_count = always_instrumented_ && ready_to_count(m, t);
  sampler::LoopEvent e = sampler::loop_event_plain(s, schedule, rate, can_count, random);
  if (!e.flush) return false;
  // The host describes the method when the iterations are enough for a compilation, not before.
  if (can_enter_loops(m)) finishes([&] { know_loops(m); });
  bool delivered = post(m, t, sampler::NoteKind::kFlushIterations, loop.index());
  if (delivered && e.change) sampler::commit_rate(s, schedule, rate, can_count, random, e);
  return true;
}

bool RuntimeImpl::can_enter_loops(const Method& m) const noexcept {
  return options_.tier == TierMode::kAuto && !m.info.own_code;
}

// Applies the stress plan at an arrival in the interpreter: makes the code that it can enter.
void RuntimeImpl::stress_host_arrival(Method& m, AttachedThread& t, LoopId loop) {
  ask_at_next_arrival(t.state(m.id));
  if (!stress_.point(StressKind::kOsr, m.id.index(), loop.index()) || !know_loops(m)) return;
  bool made = loop.index() >= m.shape->loop_count ||
              m.shape->osr_from_host[loop.index()].load(std::memory_order_acquire) != nullptr;
  if (made) return;
  {
    std::lock_guard lock(state_mutex_);
    if (m.guard_banned || m.optimize_failed) return;
  }
  Plan plan{.method = m.id, .tier = Tier::kOptimized};
  plan.osr_loop = loop;
  plan.from_host = true;
  compile_and_install(plan);
}

// Returns what an interpreter can enter at a loop, or null.
const Version* RuntimeImpl::host_loop_code(Method& m, LoopId loop, bool tells) {
  if (!m.has_shape()) return nullptr;
  uint32_t known = m.shape->loop_count;
  if (loop.index() < known) {
    const Version* v = m.shape->osr_from_host[loop.index()].load(std::memory_order_acquire);
    return usable(v) ? v : nullptr;
  }
  if (tells) report_unknown_loop(m, loop.index(), known);
  return nullptr;
}

std::optional<Outcome> RuntimeImpl::osr_enter(MethodId id, LoopId loop,
                                              std::span<const uint64_t> args,
                                              const uint64_t* frame) {
  AttachedThread* t = here();
  if (t == nullptr || !is_method(id) || events_.in_subscriber()) {
    *loop_countdown(id) = 1 << 30;  // nobody counts by it
    return std::nullopt;
  }
  Method& m = method(id.index());
  bool flushed = host_loop_event(m, *t, loop);
  if (!can_enter_loops(m)) return std::nullopt;
  if (stress_.active(StressKind::kOsr)) finishes([&] { stress_host_arrival(m, *t, loop); });
  const Version* v = nullptr;
  finishes([&] { v = host_loop_code(m, loop, flushed); });
  bool whole = args.size() == m.info.signature.params.size() && frame != nullptr;
  if (v == nullptr || !whole || !may_enter(t->context(), *v)) return std::nullopt;

  if (const jit::SlotLaw* broken = jit::broken_law(v->slot_laws, args, frame)) {
    finishes([&] { refuse_frame(m, *v, *broken); });
    return std::nullopt;
  }
  Signature signature;
  std::vector<uint64_t> words;
  bool ready = finishes([&] {
    signature = m.info.signature;
    signature.params.push_back(Type::kRef);
    words.assign(args.begin(), args.end());
    words.push_back(reinterpret_cast<uintptr_t>(frame));
  });
  if (!ready) return std::nullopt;  // the interpreter goes on
  m.shape.made()->osr_entries.fetch_add(1, std::memory_order_relaxed);
  ask_at_next_arrival(t->state(id));
  t->events.push(entered_event(*v, 0));
  return call(v->entry, signature, words);
}

}  // namespace tiering
}  // namespace uptier
