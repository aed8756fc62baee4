#include "tiering/runtime/osr_entry.h"

#include <cassert>

#include "profile/base/wall.h"
#include "tiering/model/event_of.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/counters.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/invoker.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/optimized_samples.h"

namespace uptier::tiering {
namespace {

// Stack that a call takes between the host's frame and the frame of the code, in optimized builds.
constexpr uint64_t kCallStack = 4096;

// Says whether this thread can run code instead of the loop's interpreter. The code also checks the
// stack when it makes calls, but then the call traps; here the interpreter just continues.
bool may_enter(const sampler::ThreadContext& c, const Version& v) {
  uint64_t frame = v.code == nullptr ? 0 : v.code->tables().frame_size;
  return c.exits_to_host < Runtime::kMostExitsToHost && Runtime::stack_left() >= frame + kCallStack;
}

// Makes the next arrival at a loop of the method call osr_enter.
void ask_at_next_arrival(sampler::MethodState& s) noexcept {
  sampler::store_seen(s.iterations, sampler::iterations_so_far(s));
  s.loop_gap = s.loop_countdown = 1;
  s.behind = {};
}

// How often an interpreter that counts with nobody's word arrives at loops before it asks for code.
constexpr int32_t kUncountedArrivals = 1024;

}  // namespace

std::optional<Outcome> OsrEntry::enter(MethodId id, LoopId loop, std::span<const uint64_t> args,
                                       const uint64_t* frame) {
  AttachedThread* t = engine_.here();
  if (t == nullptr || !engine_.is_method(id) || engine_.events.in_subscriber()) {
    *loop_countdown(id) = 1 << 30;  // nothing counts with it
    return std::nullopt;
  }
  // An interpreter that has only the offset decrements this one for such a method.
  if (id.index() >= sampler::kBlockMethods) t->context().nobodys_countdown = kUncountedArrivals;
  Method& m = engine_.method(id.index());
  bool flushed = host_loop_event(m, *t, loop);
  if (!can_enter_loops(m)) return std::nullopt;
  if (engine_.stress.active(StressKind::kOsr)) finishes([&] { stress_host_arrival(m, *t, loop); });
  const Version* v = nullptr;
  finishes([&] { v = host_loop_code(m, loop, flushed); });
  bool whole = args.size() == m.info.signature.params.size() && frame != nullptr;
  if (v == nullptr || !whole || !may_enter(t->context(), *v)) return std::nullopt;

  if (const jit::SlotLaw* broken = jit::broken_law(v->slot_laws, args, frame)) {
    finishes([&] { guest_waits_.refuse_frame(m, *v, *broken); });
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
  if (!ready) return std::nullopt;  // the interpreter continues
  assert(v->from_host && v->osr_loop == loop);
  m.shape.made()->osr_entries.fetch_add(1, std::memory_order_relaxed);
  ask_at_next_arrival(t->state(id));
  t->events.push(entered_event(*v, 0));
  return invoker_.call(v->entry, signature, words);
}

// A thread that is not attached has words for methods of the first block only.
ptrdiff_t OsrEntry::loop_countdown_offset(MethodId m) const noexcept {
  if (!engine_.is_method(m) || m.index() >= sampler::kBlockMethods) {
    return offsetof(sampler::ThreadContext, nobodys_countdown);
  }
  return sampler::method_offset(m.index()) + sampler::kLoopCountdownOffset;
}

int32_t* OsrEntry::loop_countdown(MethodId m) noexcept {
  sampler::ThreadContext& thread = *sampler::current_context();
  if (!engine_.is_method(m)) return &thread.nobodys_countdown;
  return &thread.any_method(m.index()).loop_countdown;
}

uint64_t* OsrEntry::counters(MethodId m) noexcept {
  return sampler::current_context()->any_method(m.index()).slab;
}

bool OsrEntry::host_loop_event(Method& m, AttachedThread& t, LoopId loop) {
  sampler::MethodState& s = t.state(m.id);
  uint64_t& random = t.context().random;
  bool in_host = m.plain.load(std::memory_order_relaxed) == nullptr;
  const sampler::Schedule& schedule = in_host ? engine_.counting : engine_.schedule;
  sampler::Rate rate = optimized_samples_.rate_of(m);
  bool can_count = engine_.always_instrumented && counters_.ready_to_count(m, t);
  sampler::LoopEvent e = sampler::loop_event_plain(s, schedule, rate, can_count, random);
  if (!e.flush) return false;
  // The host describes the method only once the iterations justify a compilation.
  if (can_enter_loops(m)) finishes([&] { guest_waits_.know_loops(m); });
  bool delivered = notes_.post(m, t, sampler::NoteKind::kFlushIterations, loop.index());
  if (delivered && e.change) sampler::commit_rate(s, schedule, rate, can_count, random, e);
  return true;
}

bool OsrEntry::can_enter_loops(const Method& m) const noexcept {
  return engine_.options.tier == TierMode::kAuto && !m.info.own_code;
}

void OsrEntry::stress_host_arrival(Method& m, AttachedThread& t, LoopId loop) {
  ask_at_next_arrival(t.state(m.id));
  if (!engine_.stress.point(StressKind::kOsr, m.id.index(), loop.index()) ||
      !guest_waits_.know_loops(m))
    return;
  bool made = loop.index() >= m.shape->loop_count ||
              m.shape->osr_from_host[loop.index()].load(std::memory_order_acquire) != nullptr;
  if (made) return;
  if (!guest_waits_.may_optimize(m)) return;
  Plan plan{.method = m.id, .tier = Tier::kOptimized};
  plan.osr_loop = loop;
  plan.from_host = true;
  guest_waits_.compile_now(m, plan);
}

const Version* OsrEntry::host_loop_code(Method& m, LoopId loop, bool tells) {
  if (!m.has_shape()) return nullptr;
  uint32_t known = m.shape->loop_count;
  if (loop.index() < known) {
    const Version* v = m.shape->osr_from_host[loop.index()].load(std::memory_order_acquire);
    return usable(v) ? v : nullptr;
  }
  if (tells) guest_waits_.report_unknown_loop(m, loop.index(), known);
  return nullptr;
}

}  // namespace uptier::tiering
