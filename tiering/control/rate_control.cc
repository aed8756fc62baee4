#include "tiering/control/rate_control.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <utility>

#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/observe/phase.h"

namespace uptier::tiering {
namespace {

using Phase = Adaptation::Phase;

constexpr uint64_t kTickNs = 10'000'000;
// A bound of epsilon is about twice the mean distance. The goal is a quarter of that, since the
// errors of a program's methods add up.
constexpr double kEnough = 8;
// Methods that always did the same may still change. Such methods are sampled as if they had at
// least kLeastNoise, and `enough` is at least kLeastEnough.
constexpr double kLeastNoise = 0.25;  // times the noise of single draws
constexpr double kLeastEnough = 2048;
constexpr double kThin = 1 << 16;
constexpr double kLooks = 64;
constexpr uint32_t kLookInterval = 64;
constexpr uint64_t kShortSlot = 8;  // iterations
constexpr uint64_t kManyCalls = 32;
// In edge mode, about so many increments are made per block that a sample executes.
constexpr double kIncrementsPerBlock = 0.5;
// The cost of recording the outcome of a condition: 0.4 to 0.75 ns (docs/notes/0031); an increment
// takes 0.27 ns (CostModel::count_ns).
constexpr double kIncrementsPerTurn = 2;

sampler::Progress operator-(const sampler::Progress& a, const sampler::Progress& b) {
  // A change of rate may take a burst back.
  auto minus = [](uint64_t x, uint64_t y) { return x - std::min(x, y); };
  return {minus(a.calls, b.calls), minus(a.iterations, b.iterations),
          minus(a.sampled_calls, b.sampled_calls), minus(a.bursts, b.bursts)};
}

// Counts of a method's instrumented copies: executed blocks, and indirect calls. Each indirect call
// is entered into a table like a value.
struct Counted {
  double blocks = 0;
  double targets = 0;
  double turns = 0;  // outcomes of conditions
};

Counted counted_of(const Method& m) {
  Counted c;
  for (const auto& [thread, s] : m.flushed->streams) {
    size_t blocks = std::min(m.shape->block_weights.size(), s.seen.counts.size());
    for (size_t i = 0; i < blocks; ++i) c.blocks += static_cast<double>(s.seen.counts[i]);
    for (const auto& [at, table] : s.seen.tables) {
      bool target = at.first == SlotKind::kCallTarget;
      bool turns = at.first == SlotKind::kValue && m.probes->counts_turns(at.second);
      if (!target && !turns) continue;
      double& sum = target ? c.targets : c.turns;
      for (const auto& [key, entry] : table) sum += static_cast<double>(entry.count);
    }
  }
  return c;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

}  // namespace

RateControl::RateControl(const Parts& p)
    : options_(p.options),
      live_(p.live),
      schedule_(p.schedule),
      counting_(p.counting),
      fast_(p.fast),
      methods_(p.methods),
      threads_(p.threads),
      observer_(p.observer),
      reclaimer_(p.reclaimer),
      requests_(p.requests),
      fixed_rate_(p.schedule.rate) {
  if (!options_.adaptive) return;
  auto burst = static_cast<uint32_t>(options_.burst);
  uint32_t target = schedule_.ladder.add(static_cast<uint32_t>(options_.interval));
  start_rate_ = sampler::Rate::decaying(0, target, burst);
  if (options_.overhead_budget == 0) return;
  sampler::BudgetOptions b;
  b.budget = options_.overhead_budget;
  b.burst = burst;
  b.target_rung = target;
  budget_.emplace(b, schedule_.ladder);
}

bool RateControl::has_rates() const {
  return schedule_.sample_calls && options_.interval != 1 && options_.gap != GapMode::kExact;
}

std::optional<sampler::CycleClock> RateControl::measure_clock(WaitedMutex& state_mutex) {
  if (!budget_) return std::nullopt;
  sampler::CycleClock clock = sampler::CycleClock::calibrate();
  HeldState lock(state_mutex);
  clock_ = clock;
  return clock;
}

std::optional<double> RateControl::spent_share() const {
  return budget_ ? std::optional(budget_->spent_share()) : std::nullopt;
}

void operator+=(sampler::Progress& a, const sampler::Progress& b) {
  a.calls += b.calls;
  a.iterations += b.iterations;
  a.sampled_calls += b.sampled_calls;
  a.bursts += b.bursts;
}

// ---- Methods and threads come and go ----------------------------------------------------------

void RateControl::add(uint32_t place, bool again) {
  fast_.add(place);
  if (has_rates()) put_rate(place, options_.adaptive ? off_rate() : fixed_rate_);
  if (again) ticked_.erase(place);
}

void RateControl::forget(uint32_t place) {
  if (budget_) budget_->forget(place);
}

void RateControl::thread_came() {
  if (last_tick_ns_ == 0 || threads_.size() == 1) give_allowance();
}

void RateControl::thread_goes(AttachedThread& t) {
  assert(t.cpu_ns() >= t.seen_cpu_ns);
  gone_cpu_ns_ += t.cpu_ns() - t.seen_cpu_ns;
  cost_gone_ += t.cost_counts();
}

void RateControl::note_flushed(Method& m) {
  if (!std::exchange(m.flushed.own().ticked, true)) ticked_.add(m.id.index());
}

// ---- Ticks ------------------------------------------------------------------------------------

sampler::Progress RateControl::progress_of(const Method& m) const {
  sampler::Progress p = m.flushed->adaptation.gone;
  for (const auto& t : threads_) p += sampler::progress_of(t->state(m.id));
  return p;
}

double RateControl::opportunities(const Method& m, const sampler::Progress& p) const {
  return static_cast<double>(p.calls) +
         static_cast<double>(p.iterations) / static_cast<double>(slot_of(m, live_));
}

double RateControl::spent_ns(const Method& m, const sampler::Progress& all,
                             const sampler::Progress& since) const {
  assert(since.sampled_calls <= all.sampled_calls);
  double samples = static_cast<double>(all.sampled_calls + all.bursts);
  Counted counted = counted_of(m);
  double each = samples == 0 ? 0 : 1 / samples;
  // Sampled calls record parameters at the entry; bursts do not.
  double values = static_cast<double>(since.sampled_calls * m.value_versions->sites.size());
  double new_samples = static_cast<double>(since.sampled_calls + since.bursts);
  double increments = kIncrementsPerBlock * counted.blocks + kIncrementsPerTurn * counted.turns;
  return cost_model_.spent_ns(since.sampled_calls, since.bursts, 0, increments * each * new_samples,
                              values + counted.targets * each * new_samples);
}

// Appends the load of a method since the last tick that looked at it. Returns false if it did
// nothing.
bool RateControl::load_of(Method& m, std::vector<sampler::MethodLoad>& loads) {
  Flushed& known = m.flushed.own();
  Adaptation& a = known.adaptation;
  sampler::Progress now = progress_of(m);
  sampler::Progress since = now - a.at_tick;
  a.at_tick = now;
  double total = opportunities(m, now);
  if (a.resting && a.phase == Phase::kKnown && total >= a.next_look) look_again(m);
  if (since.calls + since.iterations == 0) return false;
  note_activity();
  bool gone = m.optimized.load(std::memory_order_relaxed) != nullptr || m.removed;
  sampler::MethodLoad l;
  l.method = m.id.index();
  l.rate = fast_.rate(l.method).load();
  l.samples = since.sampled_calls + since.bursts;
  l.opportunities = opportunities(m, since);
  l.burst = a.burst;
  l.bursts = since.bursts;
  l.spent_ns = spent_ns(m, now, since);
  l.mass = observer_.estimates.mass_of(m);
  l.targets = observer_.estimates.target_mass_of(m);
  const sampler::Convergence& c = known.convergence;
  l.noise = std::max(c.noise(), kLeastNoise * c.variety());
  l.total = total;
  if (c.windows() >= sampler::Convergence::kLeastWindows) {
    l.enough = std::max(kEnough * c.needed(), kLeastEnough);
  }
  bool copy = usable(m.instrumented.load(std::memory_order_relaxed));
  l.wanted = !a.resting && copy && !gone;
  bool thin = l.enough > 0 && total >= kThin * l.enough;
  if (l.wanted && a.phase == Phase::kKnown && thin) {
    rest(m);
    l.wanted = false;
  }
  loads.push_back(l);
  return true;
}

void RateControl::tick_if_due() {
  if (!budget_) return;
  uint64_t now = now_ns();
  if (now - last_tick_ns_ >= kTickNs) tick(now);
}

void RateControl::tick(uint64_t now) {
  assert(budget_ && now >= last_tick_ns_);
  last_tick_ns_ = now;
  active_.store(false, std::memory_order_relaxed);
  sampler::CostCounts cost = cost_gone_;
  uint64_t elapsed = gone_cpu_ns_;
  gone_cpu_ns_ = 0;
  for (const auto& t : threads_) {
    uint64_t cpu = t->cpu_ns();
    assert(cpu >= t->seen_cpu_ns);
    elapsed += cpu - t->seen_cpu_ns;
    t->seen_cpu_ns = cpu;
    cost += t->cost_counts();
  }
  for (sampler::CostKind kind : {sampler::CostKind::kCall, sampler::CostKind::kLoop}) {
    sampler::CostCounts::Row quick = fast_.timed(kind);
    cost.rows[static_cast<size_t>(kind)].timed += quick.timed;
    cost.rows[static_cast<size_t>(kind)].cycles += quick.cycles;
  }
  sampler::CostCounts since = cost - cost_seen_;
  for (auto& row : since.rows) row.cycles -= std::min(row.cycles, row.timed * clock_.read_cost);
  cost_model_.update(since, clock_);
  cost_seen_ = cost;

  // Most methods of a large program never reach their first flush.
  std::vector<sampler::MethodLoad> loads;
  ticked_.tick([&](uint32_t i) {
    state_lock.known_held();
    // Threads have no state for a method without code; reading it would touch pages of zeros.
    Method& m = methods_.at(i);
    return m.has_shape() && load_of(m, loads);
  });
  uint64_t bursts = 0;
  for (const sampler::MethodLoad& l : loads) bursts += l.bursts;
  cost_model_.update_bursts(since.rows[static_cast<size_t>(sampler::CostKind::kLoop)].events,
                            bursts);
  std::vector<sampler::Rate> rates(loads.size());
  assert(rates.size() == loads.size());
  budget_->tick(elapsed, loads, rates);
  for (size_t i = 0; i < loads.size(); ++i) {
    if (loads[i].wanted) put_rate(loads[i].method, rates[i]);
  }
  start_rate_ = budget_->start_rate();
  give_allowance();
}

// Divides the samples allowed until the next tick among the threads.
void RateControl::give_allowance() {
  if (!budget_ || threads_.empty()) return;
  if (sampling() == Sampling::kEvery) {
    for (const auto& t : threads_)
      t->context().sample_limit.store(UINT64_MAX, std::memory_order_relaxed);
    return;
  }
  bool first = last_tick_ns_ == 0;
  uint64_t all = first ? budget_->first_allowance() : budget_->allowance();
  uint64_t each = std::max<uint64_t>(all / threads_.size(), 1);
  for (const auto& t : threads_) {
    sampler::ThreadContext& c = t->context();
    c.sample_limit.store(c.samples_taken.load(std::memory_order_relaxed) + each,
                         std::memory_order_relaxed);
  }
}

void RateControl::heed(Method& m, sampler::Verdict v) {
  Flushed& known = m.flushed.own();
  Adaptation& a = known.adaptation;
  const sampler::Convergence& c = known.convergence;
  // A method may drift all the time; only some of its drifts are logged.
  bool worth_telling = std::has_single_bit(std::max(c.drifts(), 1u));
  if (v == sampler::Verdict::kDrifted) {
    if (worth_telling) {
      observer_.decisions.log(m, "re_instrument",
                              "drift: a window lies " + percent(c.last_distance()) +
                                  " from the baseline, noise explains " +
                                  percent(c.last_allowed()));
    }
    begin_phase(m, observer_.estimates);
    a.drift = c.last_distance();
    a.phase = Phase::kLearning;
    a.resting = false;
    return;  // sampled at the current rate until the next tick
  }
  if (v != sampler::Verdict::kConverged) return;
  if (a.phase == Phase::kLearning) {
    a.phase = Phase::kKnown;
    if (!worth_telling) return;
    char samples[64];
    std::snprintf(samples, sizeof samples, ", %.0f effective samples", c.samples());
    observer_.decisions.log(
        m, "keep", "converged: within " + percent(c.error_bound()) + " of the truth" + samples);
  }
  assert(a.phase != Phase::kLooking || c.compared() >= a.windows);
  bool looked = a.phase == Phase::kLooking && c.compared() > a.windows;
  if (looked) rest(m);
}

// Ends the sampling of a known method until the next look.
void RateControl::rest(Method& m) {
  Adaptation& a = m.flushed.own().adaptation;
  if (sampling() == Sampling::kEvery) return;
  a.phase = Phase::kKnown;
  a.resting = true;
  a.next_look = opportunities(m, progress_of(m)) * (1 + 1 / kLooks);
  fast_.rate(m.id.index()).set(off_rate());
  fast_.set_entry(m.id.index(), nullptr);
  m.copy_asked.store(false, std::memory_order_relaxed);
  for (auto& v : m.versions) {
    bool copy = v->tier == Tier::kBaseline && v->copy == Copy::kInstrumented && !v->retired;
    if (copy) reclaimer_.retire(*v);
  }
}

void RateControl::look_again(Method& m) {
  Flushed& known = m.flushed.own();
  if (m.optimized.load(std::memory_order_relaxed) != nullptr) return;
  assert(known.adaptation.resting && known.adaptation.phase == Phase::kKnown);
  known.adaptation.phase = Phase::kLooking;
  known.adaptation.windows = known.convergence.compared();
  want_copy(m);
}

void RateControl::learn_on(Method& m) {
  Flushed* known = m.flushed.made();
  if (known == nullptr || known->convergence.converged()) return;
  Adaptation& a = known->adaptation;
  if (a.phase == Phase::kLearning) return;
  a.phase = Phase::kLearning;
  if (!a.resting) return;  // sampled at the current rate until the next tick
  a.resting = false;
  want_copy(m);
}

sampler::Rate RateControl::off_rate() const {
  return sampler::Rate::off(static_cast<uint32_t>(live_.burst));
}

// A method with many calls has short slots: a burst that continues in further calls takes a slow
// path in each of them, and its counts are alike. A method with few calls has whole bursts.
void RateControl::begin_observing(Method& m) {
  Adaptation& a = m.flushed.own().adaptation;
  if (a.burst == 0) {
    uint64_t calls = 0;  // as of the last flush
    for (const auto& [thread, stream] : m.flushed->streams) calls += stream.calls;
    uint64_t burst = calls < kManyCalls ? live_.burst : std::min(kShortSlot, live_.burst);
    assert(burst != 0);
    a.burst = static_cast<uint32_t>(burst);
  }
  bool looks = a.phase == Phase::kLooking;
  uint32_t rung = sampler::Ladder::power_below(kLookInterval);
  sampler::Rate begin = start_rate_;
  sampler::Rate start = sampler::Rate::decaying(begin.rung(), begin.target(), a.burst);
  put_rate(m.id.index(), looks ? sampler::Rate::sampled(rung, a.burst) : start);
}

void RateControl::want_copy(Method& m) {
  bool possible = schedule_.sample_calls && m.has_shape() &&
                  m.slab_words.load(std::memory_order_relaxed) != 0 &&
                  m.optimized.load(std::memory_order_relaxed) == nullptr &&
                  usable(m.plain.load(std::memory_order_relaxed));
  if (!possible || !m.found.load(std::memory_order_relaxed)) return;
  if (usable(m.instrumented.load(std::memory_order_relaxed))) return;
  if (m.copy_asked.exchange(true, std::memory_order_relaxed)) return;
  requests_.add(m, {.method = m.id, .copy = Copy::kInstrumented}, 1e18);
}

void RateControl::switch_off(Method& m) { fast_.rate(m.id.index()).set(off_rate()); }

// ---- Settings that change ---------------------------------------------------------------------

void RateControl::change_budget() { budget_->set_budget(live_.overhead_budget); }

// Each thread applies the change when it looks at the rate again.
void RateControl::change_flushes() {
  for (sampler::Schedule* s : {&schedule_, &counting_}) {
    sampler::change_setting(s->flush_first, live_.flush_first);
    sampler::change_setting(s->flush_growth, live_.flush_growth);
    sampler::change_setting(s->loop_flush_first, live_.loop_flush_first);
  }
  if (!has_rates()) return;
  for (const auto& m : methods_.all()) fast_.rate(m->id.index()).renew();
}

// With adaptive rates, the change applies to methods that are observed for the first time from here
// on. The samples of other methods are measured in slots of the old length.
void RateControl::change_burst() {
  auto burst = static_cast<uint32_t>(live_.burst);
  if (options_.adaptive) {
    start_rate_ = sampler::Rate::decaying(start_rate_.rung(), start_rate_.target(), burst);
    if (budget_) budget_->set_burst(burst);
    return;
  }
  observer_.estimates.lengths_of_bursts_differ();
  fixed_rate_ = sampler::Rate::sampled(fixed_rate_.rung(), burst);
  put_fixed_rate();
}

// With adaptive rates, this is the final interval.
void RateControl::change_interval() {
  auto interval = static_cast<uint32_t>(live_.interval);
  uint32_t rung = schedule_.ladder.add(interval);
  [[maybe_unused]] uint32_t same = counting_.ladder.add(interval);
  assert(rung == same);  // the ladders grow together
  if (options_.adaptive) {
    start_rate_ = sampler::Rate::decaying(0, rung, static_cast<uint32_t>(live_.burst));
    if (budget_) budget_->set_target(rung);
    return;
  }
  fixed_rate_ = sampler::Rate::sampled(rung, static_cast<uint32_t>(live_.burst));
  put_fixed_rate();
}

void RateControl::observe(Sampling how) {
  sampling_.store(how, std::memory_order_relaxed);
  for (const auto& m : methods_.all()) {
    if (!m->removed) observe_again(*m);
  }
  give_allowance();
}

void RateControl::put_fixed_rate() {
  for (const auto& m : methods_.all()) put_rate(m->id.index(), fixed_rate_);
}

// Sets the rate that the method should have now.
void RateControl::observe_again(Method& m) {
  if (!options_.adaptive) return put_rate(m.id.index(), fixed_rate_);
  bool optimized = m.optimized.load(std::memory_order_relaxed) != nullptr;
  bool copy = usable(m.instrumented.load(std::memory_order_relaxed));
  bool every = sampling() == Sampling::kEvery;
  if (copy && !optimized) return begin_observing(m);
  put_rate(m.id.index(), off_rate());
  if (every) want_copy(m);
}

// Sets the planned rate, or the rate that overrides it.
void RateControl::put_rate(uint32_t place, sampler::Rate planned) {
  Sampling how = sampling();
  if (how == Sampling::kOff) planned = off_rate();
  if (how == Sampling::kEvery && planned.samples()) planned = sampler::Rate::every(planned.burst());
  fast_.rate(place).set(planned);
}

}  // namespace uptier::tiering
