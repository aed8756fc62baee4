#include "tiering/serve/code_compaction.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

#include "jit/code/copy_code.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/event_of.h"
#include "tiering/model/looking_around.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kMs = 1'000'000;  // in ns
constexpr uint64_t kLeastChanges = 64;
constexpr uint64_t kMostBytes = 1 << 20;
constexpr uint64_t kShareOfTime = 100;        // at most 1 part in so many
constexpr uint64_t kShareOfTimeForRoom = 10;  // while room is needed
constexpr uint32_t kMethodsAtOnce = 64;       // that are examined under the mutex

// Returns the pointer by which calls, frames or samples reach a movable version in service; null
// for other versions.
std::atomic<const Version*>* place_of(Method& m, const Version& v) {
  if (v.retired || v.code == nullptr || v.general != nullptr) return nullptr;
  std::atomic<const Version*>* place = nullptr;
  if (v.enterable) {
    place = &m.enterable;
  } else if (v.osr_loop.valid()) {
    place = &(v.from_host ? m.shape->osr_from_host : m.shape->osr)[v.osr_loop.index()];
  } else if (v.tier == Tier::kOptimized) {
    place = v.copy == Copy::kPlain ? &m.optimized : nullptr;
  } else {
    place = v.copy == Copy::kPlain ? &m.plain : &m.instrumented;
  }
  bool there = place != nullptr && place->load(std::memory_order_relaxed) == &v;
  return there ? place : nullptr;
}

bool can_move(const Method& m) UPTIER_REQUIRES(state_lock) {
  const Version* best = m.optimized.load(std::memory_order_relaxed);
  bool guarded = best != nullptr && best->general != nullptr;
  return !m.removed && !m.unlinked && !guarded &&
         m.optimizing->trial.load(std::memory_order_relaxed) == nullptr;
}

// Makes the version of a copy, with the same description as `from`. It takes over the parts that
// only code in service needs.
std::unique_ptr<Version> version_of(Version& from, std::unique_ptr<jit::Code> code,
                                    jit::PollRun polls) {
  assert(!from.freed && !from.retired && code != nullptr);
  auto v = std::make_unique<Version>();
  v->tier = from.tier;
  v->copy = from.copy;
  v->osr_loop = from.osr_loop;
  v->from_host = from.from_host;
  v->loop_location = from.loop_location;
  v->enterable = from.enterable;
  v->from_image = from.from_image;
  v->code = std::move(code);
  v->entry = v->code->entry();
  v->method = from.method;
  v->code_bytes = from.code_bytes;
  v->compile_ns = from.compile_ns;
  v->compile_cpu_ns = from.compile_cpu_ns;
  v->installed_ns = from.installed_ns;
  v->inlined = from.inlined;
  v->tallies = std::move(from.tallies);
  from.tallies = {};
  v->tally_paths = std::move(from.tally_paths);
  v->made_from = std::move(from.made_from);
  v->made_error = from.made_error;
  v->made_targets = std::move(from.made_targets);
  v->made_inlined = std::move(from.made_inlined);
  v->scope = from.scope;
  v->polls = std::move(polls);
  v->serial = from.serial;
  v->by_stub = from.by_stub;
  v->refers_to = from.refers_to;
  v->bodies = from.bodies;
  v->outdated = from.outdated;
  v->slot_laws = from.slot_laws;
  v->frame_refused.store(from.frame_refused.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
  return v;
}

}  // namespace

// ---- Candidates -------------------------------------------------------------------------------

Relay::Relay(const Parts& p)
    : options_(p.options),
      live_(p.live),
      state_mutex_(p.state_mutex),
      stress_(p.stress),
      methods_(p.methods),
      observer_(p.observer),
      reclaimer_(p.reclaimer),
      space_(p.space),
      poll_words_(p.poll_words),
      service_(p.service),
      in_service_(p.in_service),
      events_(p.events),
      due_ns_(now_ns() + p.options.relay_gap_ms * kMs) {}

bool Relay::possible() const { return space_.moves(); }

void Relay::note_changes(uint64_t n) {
  uint64_t before = changes_.fetch_add(n, std::memory_order_relaxed);
  bool enough = before < kLeastChanges && before + n >= kLeastChanges;
  if (enough && possible() && options_.workers != 0) service_.wake_worker();
}

void Relay::look_at(const Method& m, Found& f) const {
  if (!can_move(m)) return;
  for (const auto& v : m.versions) {
    if (place_of(const_cast<Method&>(m), *v) != nullptr) look_at_code(m, *v, f);
  }
}

void Relay::look_at_code(const Method& m, const Version& v, Found& f) const {
  const jit::CodeSpace& space = space_;
  const jit::Code& code = *v.code;
  constexpr uint32_t kLine = jit::CodeSpace::kLine;
  auto lines = [](uint32_t bytes) { return (std::max(bytes, 1u) + kLine - 1) / kLine; };
  uint32_t cold = code.size() - code.hot_size();
  PlacedBody b{.hot_line = space.line_of(code.base()), .hot_lines = lines(code.hot_size())};
  if (cold != 0) {
    b.cold_line = space.line_of(code.cold_base());
    b.cold_lines = lines(cold);
  }
  f.snapshot.bodies.push_back(b);
  f.candidates.push_back({const_cast<Method*>(&m), v.serial, v.enterable});
}

void Relay::finish_locked(Found& f, uint64_t most_bytes) const {
  assert(f.snapshot.bodies.size() == f.candidates.size());
  f.snapshot.lines_used = space_.lines_used();
  f.snapshot.most_bytes = most_bytes;
}

Relay::Found Relay::look_locked(uint64_t most_bytes) const {
  Found f;
  for (const auto& m : methods_.all()) look_at(*m, f);
  finish_locked(f, most_bytes);
  return f;
}

uint64_t Relay::most_bytes_locked() const {
  return std::min<uint64_t>(kMostBytes, live_.code_budget / 4);
}

// ---- Moving -----------------------------------------------------------------------------------

std::optional<jit::CodeRoom> Relay::room_for(const RelayPlan& plan, bool beyond_budget) const {
  if (plan.order.empty()) return std::nullopt;
  constexpr uint64_t kLine = jit::CodeSpace::kLine;
  Result<jit::CodeRoom> room =
      space_.reserve(plan.hot_lines * kLine, plan.cold_lines * kLine, beyond_budget);
  if (!room) return std::nullopt;
  return std::move(*room);
}

// Moves the version if it still exists. Returns false if there is no room for it.
bool Relay::move_locked(const Candidate& c, jit::CodeRoom& room) {
  Method& m = *c.method;
  if (!can_move(m)) return true;
  for (auto& v : m.versions) {
    auto* place = place_of(m, *v);
    bool same = place != nullptr && v->serial == c.serial && v->enterable == c.enterable;
    if (!same) continue;
    std::span<jit::PollWord> words = v->code->polls();
    jit::PollRun polls = poll_words_.take(static_cast<uint32_t>(words.size()));
    if (polls.words().size() != words.size()) return true;  // it stays where it is
    for (size_t i = 0; i < words.size(); ++i) polls.words()[i] = words[i].load();
    auto code = jit::copy_code(space_, room, *v->code, polls.words());
    if (!code) return false;
    move_version(m, *v, *place, version_of(*v, std::move(*code), std::move(polls)));
    return true;
  }
  return true;
}

void Relay::move_version(Method& m, Version& from, std::atomic<const Version*>& place,
                         std::unique_ptr<Version> to) {
  assert(place.load(std::memory_order_relaxed) == &from && !from.moved && !from.retired);
  assert(to->serial == from.serial && to->code_bytes == from.code_bytes);
  Version* v = to.get();
  m.versions.push_back(std::move(to));  // invalidates iterators
  in_service_.take_moved_locked(m, *v);
  // Release pairs with the acquire of threads that load the pointer, as for any install.
  place.store(v, std::memory_order_release);
  bool calls_reach = !v->enterable && !v->osr_loop.valid();
  if (calls_reach) in_service_.link_locked(m);
  from.moved = true;
  events_.emit(event_of(EventKind::kMoved, *v));
  reclaimer_.retire(from);
  waiting_bytes_ += from.code_bytes;
  report_.bodies++;
  report_.bytes += from.code_bytes;
}

void Relay::forget_locked(const Version& v) {
  assert(v.moved && v.freed && waiting_bytes_ >= v.code_bytes);
  waiting_bytes_ -= v.code_bytes;
  Method& m = methods_.at(v.method.index());
  // The object stays as long as ended trials refer to it.
  bool named = std::ranges::any_of(
      m.optimizing->trials, [&](const auto& t) { return &t->before == &v || &t->now == &v; });
  auto at = std::ranges::find(m.versions, &v, &std::unique_ptr<Version>::get);
  if (named || at == m.versions.end()) return;
  in_service_.forget_caller_locked(**at);
  reclaimer_.drop(std::move(*at));
  m.versions.erase(at);
}

void Relay::end_locked(const RelayPlan& plan, uint64_t started_ns) {
  assert(plan.why != RelayWhy::kNone);
  observer_.decisions.log_event("relay", plan.text());
  report_.relays++;
  report_.pages_before = plan.pages_before;
  report_.pages_after = plan.pages_after;
  report_.ns += now_ns() - started_ns;
  in_service_.reclaim_locked();
}

// ---- Scheduling -------------------------------------------------------------------------------

void Relay::if_due() {
  bool due = possible() && changes_.load(std::memory_order_relaxed) >= kLeastChanges;
  if (!due) return;
  std::unique_lock only(looking_, std::try_to_lock);
  uint64_t start = now_ns();
  if (!only || (options_.measure_rates && start < due_ns_)) return;
  changes_.store(0, std::memory_order_relaxed);
  LookingAround looking(service_);
  Found f;
  uint32_t count = methods_.size();
  for (uint32_t from = 0; from < count; from += kMethodsAtOnce) {
    state_mutex_.give_way();
    HeldState lock(state_mutex_);
    uint32_t end = std::min(count, from + kMethodsAtOnce);
    for (uint32_t i = from; i < end; ++i) look_at(methods_.at(i), f);
  }
  {
    HeldState lock(state_mutex_);
    uint64_t most = most_bytes_locked();
    // Moving code exists twice for a while. Nothing is evicted for that.
    uint64_t wanted = live_.code_budget * 3 / 4;
    most = std::min(most, wanted - std::min(wanted, space_.bytes_in_service()));
    if (waiting_bytes_ > most / 2) most = 0;
    finish_locked(f, most);
  }
  RelayPlan plan = plan_relay(f.snapshot, {.holes = options_.relay_holes});
  uint64_t planned = now_ns();
  std::optional<jit::CodeRoom> room = room_for(plan, false);
  for (size_t i = 0; room && i < plan.order.size(); ++i) {
    state_mutex_.give_way();
    HeldState lock(state_mutex_);
    if (!move_locked(f.candidates[plan.order[i]], *room)) break;
  }
  HeldState lock(state_mutex_);
  if (room) end_locked(plan, planned);
  report_.looks++;
  report_.look_ns += planned - start;
  uint64_t now = now_ns();
  uint64_t gap = std::max(options_.relay_gap_ms * kMs, (now - start) * kShareOfTime);
  due_ns_ = now + gap;
}

uint64_t Relay::wait_ms() const {
  bool changed = possible() && changes_.load(std::memory_order_relaxed) >= kLeastChanges;
  if (!changed) return 0;
  uint64_t now = now_ns();
  return due_ns_ <= now ? 1 : (due_ns_ - now) / kMs + 1;
}

bool Relay::for_room() {
  if (!possible()) return false;
  HeldState lock(state_mutex_);
  in_service_.reclaim_locked();
  uint64_t start = now_ns();
  bool measured = options_.measure_rates;
  if (waiting_bytes_ > most_bytes_locked() / 2 || (measured && start < due_room_ns_)) return false;
  Found f = look_locked(most_bytes_locked() / 2);
  f.snapshot.room_wanted = true;
  uint64_t before = space_.bytes_in_service();
  RelayPlan plan = plan_relay(f.snapshot, {.holes = options_.relay_holes});
  if (plan.why != RelayWhy::kNone) {
    // Moving code exists twice for a while, so it may exceed the budget by that much.
    std::optional<jit::CodeRoom> room = room_for(plan, true);
    for (size_t i = 0; room && i < plan.order.size(); ++i) {
      if (!move_locked(f.candidates[plan.order[i]], *room)) break;
    }
    room.reset();
    end_locked(plan, start);
  }
  uint64_t now = now_ns();
  due_room_ns_ = now + (now - start) * kShareOfTimeForRoom;
  return space_.bytes_in_service() < before;
}

void Relay::stress_point() {
  bool active = stress_.active(StressKind::kRelay) && possible();
  if (!active || !stress_.point(StressKind::kRelay)) return;
  uint64_t start = now_ns();
  // Frames may keep much of the old code alive, and calls must not be refused because of that.
  if (space_.bytes_in_service() > live_.code_budget / 2) return;
  RelayPlan plan;
  {
    Found f = look_locked(UINT64_MAX);
    plan = relay_all(f.snapshot);
    std::optional<jit::CodeRoom> room = room_for(plan, false);
    if (!room) return;
    for (uint32_t n : plan.order) {
      if (!move_locked(f.candidates[n], *room)) break;
    }
  }
  end_locked(plan, start);
}

}  // namespace uptier::tiering
