#include "tiering/runtime/guest_loops.h"

#include <cassert>

#include "jit/code/code_space.h"
#include "sampler/fast_sample.h"
#include "tiering/model/event_of.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/counters.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/optimized_samples.h"
#include "tiering/runtime/traps.h"

namespace uptier::tiering {
namespace {

constexpr int32_t kLoopFarAway = 0x7ffffff0;

// Returns where a frame continues in the same code after a check at a loop header.
const void* continue_at(const jit::Code& code, uint32_t loop) {
  assert(loop < code.tables().loops.size());
  return code.at(code.tables().loops[loop].continue_offset);
}

// Returns where a frame enters from the other copy. The version must be in service.
const void* arrive_at(const Version& v, uint32_t loop) {
  assert(v.code != nullptr && loop < v.code->tables().loops.size());
  return v.code->at(v.code->tables().loops[loop].arrive_offset);
}

// Makes the next arrival at a loop header an event again, in either copy.
void make_next_arrival_due(sampler::MethodState& s, bool instrumented) {
  sampler::store_seen(s.iterations, sampler::iterations_so_far(s));
  s.loop_gap = s.loop_countdown = instrumented ? -1 : 1;
  s.behind = {};
}

// Ends the polling frame, as a fault in its code would. `pc` is the address after its call.
void put_stop(sampler::ThreadContext& c, const void* pc) {
  put_trap(c, TrapCode::kInterrupted, 0);
  c.trap_pc = reinterpret_cast<uintptr_t>(pc) - 1;
}

}  // namespace

const void* GuestLoops::loop_plain(uint32_t index, uint32_t loop, const void* pc) noexcept {
  if (AttachedThread* t = engine_.here()) return arrive(engine_.method(index), *t, loop, false, pc);
  sampler::current_context()->any_method(index).loop_countdown = kLoopFarAway;
  return continue_at(*engine_.space->owner_of(pc), loop);
}

const void* GuestLoops::loop_instrumented(uint32_t index, uint32_t loop, const void* pc) noexcept {
  if (AttachedThread* t = engine_.here()) return arrive(engine_.method(index), *t, loop, true, pc);
  return continue_at(*engine_.space->owner_of(pc), loop);
}

const void* GuestLoops::arrive(Method& m, AttachedThread& t, uint32_t loop, bool from_copy,
                               const void* pc) noexcept {
  assert(loop < m.shape->loop_count);
  if (t.stop.due()) {
    put_stop(t.context(), pc);
    return engine_.routines.trap_exit();
  }
  uint64_t started = t.cost().start(sampler::CostKind::kLoop);
  bool in_copy = loop_event(m, t, loop, from_copy);
  t.cost().stop(sampler::CostKind::kLoop, started);
  if (const void* better = osr_target(m, loop, t)) {
    if (from_copy) count_crossing(m, t, loop, false);
    return better;
  }
  if (engine_.stress.active(StressKind::kOsr) || engine_.stress.active(StressKind::kCopy)) {
    if (const void* better = stress_arrival(m, loop, t, in_copy)) {
      if (from_copy) count_crossing(m, t, loop, false);
      return better;
    }
  }
  if (in_copy == from_copy) return continue_at(*engine_.space->owner_of(pc), loop);
  const Version* other = (in_copy ? m.instrumented : m.plain).load(std::memory_order_acquire);
  if (!usable(other)) return continue_at(*engine_.space->owner_of(pc), loop);
  count_crossing(m, t, loop, in_copy);
  return arrive_at(*other, loop);
}

bool GuestLoops::loop_event(Method& m, AttachedThread& t, uint32_t loop, bool from_copy) noexcept {
  sampler::MethodState& s = t.state(m.id);
  sampler::ThreadContext& c = t.context();
  sampler::MethodRate& method_rate = engine_.fast->rate(m.id.index());
  sampler::Rate rate = optimized_samples_.rate_of(m);
  bool can_count = engine_.schedule.sample_calls && counters_.ready_to_count(m, t);
  uint64_t bursts = s.bursts;
  sampler::LoopEvent e =
      from_copy ? sampler::loop_event_instrumented(s, engine_.schedule, rate, can_count, c.random)
                : sampler::loop_event_plain(s, engine_.schedule, rate, can_count, c.random);
  if (e.flush) {
    bool delivered = notes_.post(m, t, sampler::NoteKind::kFlushIterations, loop);
    if (delivered && e.change)
      sampler::commit_rate(s, engine_.schedule, rate, can_count, c.random, e);
  }
  sampler::Rate in_force{s.rate};
  if (e.widen) method_rate.widen(in_force, engine_.schedule.ladder);
  if (s.bursts != bursts && sampler::spend_sample(c)) notes_.brake(m, in_force);
  bool left_behind = m.optimized.load(std::memory_order_relaxed) != nullptr;
  if (!from_copy && e.due && !e.instrumented && !left_behind) counters_.lose_sample(m, t);
  return e.instrumented;
}

void GuestLoops::count_crossing(Method& m, AttachedThread& t, uint32_t loop, bool in) noexcept {
  const jit::ProbePlan& plan = m.probes->plan();
  const std::vector<uint32_t>& offsets = in ? plan.loop_enter : plan.loop_leave;
  uint64_t* slab = t.state(m.id).slab;
  if (loop >= offsets.size() || slab == nullptr) return;
  assert(offsets[loop] % 8 == 0);
  uint64_t& word = slab[offsets[loop] / 8];
  if (m.probes->shared()) {
    __atomic_fetch_add(&word, 1, __ATOMIC_RELAXED);
  } else {
    ++word;
  }
}

const void* GuestLoops::osr_target(Method& m, uint32_t loop, AttachedThread& t) noexcept {
  if (engine_.options.tier != TierMode::kAuto) return nullptr;
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  if (v == nullptr) {
    bool left_behind = m.optimized.load(std::memory_order_relaxed) != nullptr ||
                       m.shape->osr_began.load(std::memory_order_relaxed);
    Trial* trial = m.optimizing->trial.load(std::memory_order_acquire);
    if (left_behind && trial != nullptr && trial->explains_baseline()) return nullptr;
    if (left_behind && m.shape->osr_questions[loop].arrive() &&
        !m.shape->osr_asked[loop].exchange(true, std::memory_order_relaxed)) {
      notes_.post(m, t, sampler::NoteKind::kWantOsr, loop);
    }
    return nullptr;
  }
  assert(v->osr_loop.index() == loop && !v->from_host);
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (here < t.context().stack_limit + v->code->tables().frame_size) return nullptr;
  m.shape.made()->osr_entries.fetch_add(1, std::memory_order_relaxed);
  t.events.push(entered_event(*v, 0));
  return v->entry;
}

const void* GuestLoops::stress_arrival(Method& m, uint32_t loop, AttachedThread& t,
                                       bool& in_copy) noexcept {
  if (engine_.stress.active(StressKind::kOsr) &&
      engine_.stress.point(StressKind::kOsr, m.id.index(), loop)) {
    if (m.shape->osr[loop].load(std::memory_order_acquire) == nullptr) {
      guest_waits_.compile_now(
          m, {.method = m.id, .tier = Tier::kOptimized, .osr_loop = LoopId(loop)});
    }
    if (const Version* v = m.shape->osr[loop].load(std::memory_order_acquire)) {
      m.shape.made()->osr_entries.fetch_add(1, std::memory_order_relaxed);
      t.events.push(entered_event(*v, 0));
      return v->entry;
    }
  }
  const Version* other = (in_copy ? m.plain : m.instrumented).load(std::memory_order_acquire);
  bool copy = engine_.stress.active(StressKind::kCopy) &&
              engine_.stress.point(StressKind::kCopy, m.id.index(), 2 * loop + in_copy);
  if (copy && usable(other) && (in_copy || counters_.ready_to_count(m, t))) in_copy = !in_copy;
  make_next_arrival_due(t.state(m.id), in_copy);
  return nullptr;
}

}  // namespace uptier::tiering
