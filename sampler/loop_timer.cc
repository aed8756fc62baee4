// Compiled with -mgeneral-regs-only: see loop_timer.h.
#include "sampler/loop_timer.h"

#include <sys/syscall.h>
#include <time.h>

#include "sampler/context.h"
#include "sampler/loop_pace.h"

namespace uptier::sampler {
namespace {

__extension__ using Uint128 = unsigned __int128;
__extension__ using Int128 = __int128;

// Reads the clock as the routines of compiled code do: earlier instructions are complete, later
// ones have not begun.
uint64_t cycles_now() noexcept {
  asm volatile("lfence" ::: "memory");
  uint64_t now = __builtin_ia32_rdtsc();
  asm volatile("lfence" ::: "memory");
  return now;
}

uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

constexpr uint64_t kFew = 8;        // records
constexpr uint64_t kSome = 64;      // records
constexpr uint64_t kSeldom = 4096;  // entries
// The length of the branch history of predictors: Zen 4 and Golden Cove use up to some 200 taken
// branches.
constexpr uint64_t kHistory = 200;

// Gives the next timed code the same history of branches, whatever ran before.
void forget_history() noexcept {
  uint64_t n = kHistory;
  asm volatile(
      "1: dec %0\n\t"
      "jnz 1b"
      : "+r"(n)
      :
      : "cc");
}

// The host's functions may use vector registers, and the probe routine has not saved them. The
// 128-bit ones suffice: compiled code has no others.
struct VectorRegisters {
  uint8_t bytes[16][16];

  [[gnu::always_inline]] void save() noexcept {
// clang-format off
#define UPTIER_SAVE(n) asm volatile("movups %%xmm" #n ", %0" : "=m"(bytes[n]));
    UPTIER_SAVE(0) UPTIER_SAVE(1) UPTIER_SAVE(2) UPTIER_SAVE(3) UPTIER_SAVE(4) UPTIER_SAVE(5)
    UPTIER_SAVE(6) UPTIER_SAVE(7) UPTIER_SAVE(8) UPTIER_SAVE(9) UPTIER_SAVE(10) UPTIER_SAVE(11)
    UPTIER_SAVE(12) UPTIER_SAVE(13) UPTIER_SAVE(14) UPTIER_SAVE(15)
#undef UPTIER_SAVE
  }
  [[gnu::always_inline]] void restore() const noexcept {
#define UPTIER_RESTORE(n) asm volatile("movups %0, %%xmm" #n : : "m"(bytes[n]));
    UPTIER_RESTORE(0) UPTIER_RESTORE(1) UPTIER_RESTORE(2) UPTIER_RESTORE(3) UPTIER_RESTORE(4)
    UPTIER_RESTORE(5) UPTIER_RESTORE(6) UPTIER_RESTORE(7) UPTIER_RESTORE(8) UPTIER_RESTORE(9)
    UPTIER_RESTORE(10) UPTIER_RESTORE(11) UPTIER_RESTORE(12) UPTIER_RESTORE(13) UPTIER_RESTORE(14)
    UPTIER_RESTORE(15)
#undef UPTIER_RESTORE
    // clang-format on
  }
};

uint64_t begin_of(const LoopTimer::Meter& m) noexcept {
  VectorRegisters kept;
  kept.save();
  uint64_t stamp = m.begin(m.user);
  kept.restore();
  return stamp;
}

uint64_t end_of(const LoopTimer::Meter& m, uint64_t stamp) noexcept {
  VectorRegisters kept;
  kept.save();
  uint64_t gone = m.end(m.user, stamp);
  kept.restore();
  return gone;
}

// After a pause, branch predictors have to learn again, which matters in short executions. A loop
// that is timed alone has longer tiles, so that inner loops, which wait meanwhile, find room for
// their own tiles between two of them. A run never becomes shorter: the rest of a run is to be
// recorded.
LoopPace::Tile tile_of(const uint64_t* words) {
  auto below = [words](uint64_t cycles) { return words[kLoopCycles] / cycles < words[kLoopTimed]; };
  LoopPace::Tile tile{8, 4};
  if (below(1000)) tile = {8, 64};
  if (below(300)) tile = {8, 190};
  if (LoopPace::of(words).shares) tile.run = 64;
  return tile;
}

// Returns the number of entries after which a drawn execution lies in another stratum, at any
// level.
uint64_t reach_of(const uint64_t* words) {
  LoopPace pace = LoopPace::of(words);
  uint32_t level = pace.level > pace.drawn_at ? pace.level : pace.drawn_at;
  return uint64_t{2} * tile_of(words).run << level;
}

// Says whether the loop is usually much shorter: an absence is then the likeliest explanation.
bool is_strange(const uint64_t* words, uint64_t net) {
  return words[kLoopTimed] >= kFew && words[kLoopCycles] / words[kLoopTimed] < net / 16;
}

}  // namespace

// ---- Absences ---------------------------------------------------------------------------------

// Makes the system call directly: the C library's function may use vector registers.
uint64_t LoopTimer::CpuClock::thread_cpu_ns() noexcept {
  timespec t;
  long result = SYS_clock_gettime;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(CLOCK_THREAD_CPUTIME_ID), "S"(&t)
               : "rcx", "r11", "memory");
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void LoopTimer::set_clock(const CpuClock& clock, uint64_t now) noexcept {
  clock_ = clock;
  looked_at_ = now;
  probes_away_ = 0;
  if (clock_.read != nullptr) looked_cpu_ = clock_.read();
}

// No probe takes kAbsent by itself, so a longer one contains an absence.
void LoopTimer::settle() noexcept {
  uint64_t took = spent_ - settled_;
  if (took >= kAbsent) probes_away_ += took;
  settled_ = spent_;
}

void LoopTimer::look_away(uint64_t now) noexcept {
  uint64_t cpu = clock_.read();
  auto used = static_cast<uint64_t>(Uint128{cpu - looked_cpu_} * clock_.cycles_per_ns >> 32);
  away_ += less(now - looked_at_, used + probes_away_);
  looked_at_ = now;
  looked_cpu_ = cpu;
  probes_away_ = 0;
}

void LoopTimer::look_away_before(const uint64_t* words, uint64_t now) noexcept {
  if (clock_.read == nullptr) return;
  bool is_long = words[kLoopCycles] > words[kLoopTimed] * kLong;
  if (now - looked_at_ <= (is_long ? kLong / 16 : kStale)) return;
  look_away(now);
}

// The two clocks are read one after the other, and the time between the last reading and the start
// of an execution may be part of `away`. So `away` may be longer than the execution.
uint64_t LoopTimer::less_away(uint64_t net, uint64_t away) noexcept {
  bool fits = away <= net + net / 8 + kLong / 8;
  return fits ? less(net, away) : net;
}

// ---- The stack --------------------------------------------------------------------------------

LoopTimer::Entry LoopTimer::pop() noexcept {
  Entry e = top();
  --depth_;
  e.words[kLoopState] += kOneOpen;
  if (e.alone) --alone_;
  return e;
}

void LoopTimer::drop() noexcept {
  Entry e = pop();
  bump(losses_.stale);
  if (depth_ != 0) {
    top().child += e.child;
    if (top().words == e.words) top().again += e.again;
  }
  spoil(e.words);  // its own iterations are not known
}

void LoopTimer::drop_to(uint32_t depth) noexcept {
  while (depth_ > depth) drop();
}

void LoopTimer::unwind(uint64_t frame) noexcept {
  while (depth_ != 0 && top().frame < frame) drop();
}

uint32_t LoopTimer::find(const LoopKey& key) const noexcept {
  for (uint32_t i = depth_; i-- > 0 && stack_[i].frame == key.frame;) {
    if (stack_[i].words == key.words) return i;
  }
  return depth_;
}

LoopTimer::Entry* LoopTimer::outer_of(const uint64_t* words) noexcept {
  for (uint32_t i = depth_; i-- > 0;) {
    if (stack_[i].words == words) return &stack_[i];
  }
  return nullptr;
}

void LoopTimer::spoil(const uint64_t* words) noexcept {
  if (loop_open(words[kLoopState]) == 0) return;
  for (uint32_t i = 0; i < depth_; ++i) {
    if (stack_[i].words == words) stack_[i].spoiled = true;
  }
}

// ---- Events -----------------------------------------------------------------------------------

uint64_t LoopTimer::put_off_entry(const LoopKey& key) noexcept {
  LoopPace pace = LoopPace::of(key.words);
  uint64_t entries = put_off(pace, tile_of(key.words), random_);
  pace.store(key.words);
  return entries;
}

bool LoopTimer::share(const LoopKey& inner) noexcept {
  uint32_t at = depth_;
  while (at != 0 && !stack_[at - 1].paced) --at;
  if (at == 0) return false;
  Entry& e = stack_[at - 1];
  uint64_t* w = e.words;
  LoopPace pace = LoopPace::of(w);
  if (pace.shares || w == inner.words || inner.records >= kEvery) return true;
  if (!e.recorded || e.alone) return false;
  // Raising the level drops half of the records, so there should be some.
  bool few = w[kLoopTimed] < kFew;
  if (few || w[kLoopCycles] > w[kLoopTimed] * kApart) return false;
  pace.shares = true;
  pace.store(w);
  if (pace.level == 0) halve_loop(w);
  return true;
}

const LoopTimer::Entry* LoopTimer::paced_outer_of(const uint64_t* words) const noexcept {
  if (loop_open(words[kLoopState]) == 0) return nullptr;
  for (uint32_t i = depth_; i-- > 0;) {
    if (stack_[i].words == words && stack_[i].paced) return &stack_[i];
  }
  return nullptr;
}

// The state word says when the code calls. In dual mode the code always calls, and another word is
// counted down.
LoopTimer::Drawn LoopTimer::draw(const LoopKey& key, const Entry* outer) noexcept {
  uint64_t& state = key.words[kLoopState];
  uint64_t open = loop_open(state);
  bool due = state + open * kOneOpen == UINT64_MAX;
  uint64_t* countdown = &state;
  if (dual_) {
    state += due ? 1 : 0;
    countdown = &key.words[kLoopCountdown];
    due = --*countdown == UINT64_MAX;
    open = outer != nullptr ? 1 : 0;
  }
  LoopPace pace = LoopPace::of(key.words);
  Drawn d{open != 0, false, false, pace.drawn_at};
  if (!due) return d;
  if (alone_ != 0 && open == 0) {
    *countdown += 1 + put_off_entry(key);
    return d;
  }
  LoopPace::Tile tile = tile_of(key.words);
  *countdown += 1 + pace.take(tile, random_, d.recorded);
  d.first = d.recorded && pace.left == tile.run - 1;
  pace.store(key.words);
  d.paced = true;
  return d;
}

LoopTimer::Entry* LoopTimer::push(const LoopKey& key, uint64_t now) noexcept {
  unwind(key.frame);
  while (depth_ != 0 && top().frame == key.frame && (key.function || top().slab != key.slab)) {
    drop();
  }
  drop_to(find(key));
  uint64_t& state = key.words[kLoopState];
  if (key.records == 0) {
    bool again = dual_ && (depth_ == 0 || !share(key));
    state += again ? kSeldom : kEvery;
    return nullptr;
  }
  const Entry* outer = paced_outer_of(key.words);
  Drawn drawn = draw(key, outer);
  if (!drawn.paced && !dual_) return nullptr;  // put off, or it was called because of a stale entry
  if (depth_ == kDepth) {
    bump(losses_.full);
    spoil(key.words);
    if (++refused_ == kPatience) drop_to(0);
    return nullptr;
  }
  refused_ = 0;
  look_away_before(key.words, now);
  Entry& e = stack_[depth_++];
  state -= kOneOpen;
  e.slab = key.slab;
  e.words = key.words;
  e.frame = key.frame;
  e.away = away_;
  e.child = e.nested = e.again = 0;
  e.iterations = key.words[kLoopIterations];
  uint64_t entries = key.words[kLoopEntries];
  e.since = outer != nullptr ? outer->since : entries;
  bool followed = outer != nullptr && entries - e.since >= reach_of(key.words);
  e.level = static_cast<uint8_t>(followed ? 0 : drawn.level);
  e.paced = drawn.paced;
  e.recorded = drawn.recorded || followed;
  e.first = drawn.first || followed;
  e.spoiled = false;
  e.alone = e.recorded && e.level != 0 && LoopPace::of(key.words).shares &&
            key.words[kLoopCycles] <= key.words[kLoopTimed] * kApart;
  alone_ += e.alone ? 1 : 0;
  return &e;
}

bool LoopTimer::enter(const LoopKey& key, uint64_t now) noexcept {
  settle();
  spent_ += costs_.outer / 2;
  Entry* e = push(key, now);
  if (e == nullptr) return false;
  e->start = is_metered() ? begin_of(meter_) : now - spent_;
  return true;
}

void LoopTimer::leave(const LoopKey& key, uint64_t now) noexcept {
  settle();
  unwind(key.frame);
  uint32_t at = find(key);
  if (at != depth_ && stack_[at].slab == key.slab) {
    drop_to(at + 1);
    complete(key, now);
  }
  spent_ += costs_.outer - costs_.outer / 2;
}

uint64_t LoopTimer::net_of(const Entry& open, uint64_t now) noexcept {
  if (is_metered()) return end_of(meter_, open.start);
  auto elapsed = static_cast<int64_t>(now - spent_ - open.start);
  // Negative if the costs, which are estimates, exceed the elapsed time.
  uint64_t net = elapsed < 0 ? 0 : less(static_cast<uint64_t>(elapsed), costs_.inner);
  bool strange = net >= kStrange && is_strange(open.words, net);
  if ((net >= kLong || strange) && clock_.read != nullptr) {
    look_away(now);
    uint64_t away = away_ - open.away;
    if (strange) away = away < net ? away : net;
    net = less_away(net, away);
  }
  return net;
}

void LoopTimer::keep(const Entry& e, uint64_t cycles) noexcept {
  if (first_kept_ == first_room_) return;
  first_[first_kept_] = {e.slab, e.words, cycles};
  __atomic_store_n(&first_kept_, first_kept_ + 1, __ATOMIC_RELEASE);  // pairs with kept()
}

void LoopTimer::complete(const LoopKey& key, uint64_t now) noexcept {
  Entry& open = top();
  uint64_t net = net_of(open, now);
  if (net < open.child) net = open.child;  // the costs that were subtracted are an estimate
  Entry e = pop();
  uint64_t iterations = e.words[kLoopIterations] - e.iterations;
  if (depth_ != 0) {
    top().child += e.paced ? net : e.child;
    if (e.paced) share(key);
  }
  Entry* outer = loop_open(e.words[kLoopState]) != 0 ? outer_of(e.words) : nullptr;
  if (outer != nullptr) {
    outer->nested += iterations;
    outer->again += net;
    outer->spoiled |= e.spoiled;
  }
  if (dual_ && !e.spoiled) {
    ++e.words[kLoopAllTimed];
    e.words[kLoopAllCycles] += less(net, e.again);
  }
  if (!e.spoiled) keep(e, less(net, e.again));
  if (!e.recorded) return;
  if (e.spoiled) {
    bump(losses_.spoiled);
    return;
  }
  uint32_t level = LoopPace::of(e.words).level;
  if (e.level >= level) {
    record(e, net, iterations - e.nested);
  } else {
    record_part(e, level, net, iterations - e.nested);
  }
  widen_loop(e.words, key.records);
}

// The mean of the current window, once the window has some.
uint64_t LoopTimer::mean_of(const uint64_t* w) noexcept {
  uint64_t timed = w[kLoopTimed] - w[kLoopWindow], cycles = w[kLoopCycles] - w[kLoopWindow + 2];
  return timed >= kSome ? cycles / timed : w[kLoopCycles] / w[kLoopTimed];
}

void LoopTimer::record(const Entry& e, uint64_t net, uint64_t iterations) noexcept {
  uint64_t* w = e.words;
  uint64_t own = less(net, e.again);
  if (e.first || w[kLoopTimed] == 0) {
    w[kLoopTileMean] = w[kLoopTimed] == 0 ? own : mean_of(w);
    w[kLoopTileSum] = 0;
  }
  auto apart = static_cast<int64_t>(own - w[kLoopTileMean]);
  auto before = static_cast<int64_t>(w[kLoopTileSum]);
  w[kLoopTileSum] += own - w[kLoopTileMean];
  ++w[kLoopTimed];
  w[kLoopTimedIterations] += iterations;
  w[kLoopCycles] += own;
  w[kLoopExclusive] += net - e.child;
  Uint128 squares = Uint128{w[kLoopSquaresHigh]} << 64 | w[kLoopSquaresLow];
  squares += Uint128{own} * own;
  squares += static_cast<Uint128>(Int128{apart} * before * 2);
  w[kLoopSquaresLow] = static_cast<uint64_t>(squares);
  w[kLoopSquaresHigh] = static_cast<uint64_t>(squares >> 64);
}

void LoopTimer::record_part(const Entry& e, uint32_t level, uint64_t net,
                            uint64_t iterations) noexcept {
  uint64_t* w = e.words;
  const uint64_t sums[] = {1, iterations, less(net, e.again), net - e.child};
  uint64_t grown[4];
  for (uint32_t i = 0; i < 4; ++i) {
    uint64_t all = w[kLoopParts + i] + (sums[i] << e.level);
    grown[i] = all >> level;
    w[kLoopTimed + i] += grown[i];
    w[kLoopParts + i] = all - (grown[i] << level);
  }
  w[kLoopPartCycles] += grown[2];
  if (grown[0] == 0) return;
  uint64_t mean = w[kLoopPartCycles] / grown[0];
  Uint128 squares = Uint128{w[kLoopSquaresHigh]} << 64 | w[kLoopSquaresLow];
  squares += Uint128{mean} * mean * grown[0];
  w[kLoopSquaresLow] = static_cast<uint64_t>(squares);
  w[kLoopSquaresHigh] = static_cast<uint64_t>(squares >> 64);
  w[kLoopPartCycles] = 0;
}

void LoopTimer::arrive(const uint64_t* slab, uint64_t frame) noexcept {
  unwind(frame);
  while (depth_ != 0 && top().frame == frame) drop();
  for (uint32_t i = 0; i < depth_; ++i) {
    if (stack_[i].slab == slab) stack_[i].spoiled = true;
  }
}

// ---- Windows ----------------------------------------------------------------------------------

void rearm_loop(uint64_t* words) noexcept {
  for (uint32_t i = 0; i < kLoopPublicWords - kLoopTimed; ++i) {
    words[kLoopWindow + i] = words[kLoopTimed + i];
  }
  words[kLoopPartCycles] = 0;  // of another window
  LoopPace pace = LoopPace::of(words);
  if (pace.level > (pace.shares ? 1 : 0)) --pace.level;
  pace.store(words);
}

// ---- Costs ------------------------------------------------------------------------------------

namespace {

constexpr uint32_t kRounds = 256;

template <typename Pair>
LoopTimer::Costs least_costs(const LoopTimer& timer, Pair pair) noexcept {
  uint64_t slab[kLoopDualWords] = {};
  LoopTimer::Costs least{UINT64_MAX, UINT64_MAX};
  uint64_t reading = UINT64_MAX;  // the cost of reading the counter
  for (uint32_t i = 0; i < kRounds; ++i) {
    uint64_t seen = slab[kLoopCycles], spent = timer.spent();
    uint64_t before = cycles_now(), between = cycles_now();
    pair(slab);
    uint64_t after = cycles_now();
    if (between - before < reading) reading = between - before;
    uint64_t inner = slab[kLoopCycles] - seen;
    uint64_t outer = less(after - between, timer.spent() - spent);
    if (inner < least.inner) least.inner = inner;
    if (outer < least.outer) least.outer = outer;
  }
  least.outer = less(least.outer, reading);
  return least;
}

}  // namespace

LoopTimer::Costs LoopTimer::measure(void (*pair)(uint64_t* slab), bool dual) noexcept {
  LoopTimer timer;
  timer.set_dual(dual);
  ThreadContext& context = *current_context();
  LoopTimer* before = context.loops;
  context.loops = &timer;
  Costs c = least_costs(timer, pair);
  context.loops = before;
  return c;
}

LoopTimer::Costs LoopTimer::measure() noexcept {
  LoopTimer timer;
  return least_costs(timer, [&timer](uint64_t* slab) {
    LoopKey key{slab, slab, reinterpret_cast<uintptr_t>(slab), INT32_MAX, false};
    --slab[kLoopState];
    uint64_t now = cycles_now();
    timer.enter(key, now);
    *timer.spend(now) += cycles_now();
    now = cycles_now();
    timer.leave(key, now);
    *timer.spend(now) += cycles_now();
  });
}

// ---- Compiled code ----------------------------------------------------------------------------

namespace {

LoopKey key_of(uint64_t* slab, const ProbeCall* call) {
  auto bits = static_cast<uint32_t>(call->extra);
  return {slab, call->words(slab), call->value, bits & 0x7fffffff, bits >> 31 != 0};
}

}  // namespace

extern "C" uint64_t* uptier_loop_enter(uint64_t* slab, const ProbeCall* call,
                                       ThreadContext* context, uint64_t now) noexcept {
  if (context->loops == nullptr) return nullptr;
  bool timed = context->loops->enter(key_of(slab, call), now);
  if (timed && !context->loops->is_metered()) forget_history();
  return context->loops->spend(now);
}

extern "C" uint64_t* uptier_loop_leave(uint64_t* slab, const ProbeCall* call,
                                       ThreadContext* context, uint64_t now) noexcept {
  if (context->loops == nullptr) return nullptr;
  context->loops->leave(key_of(slab, call), now);
  return context->loops->spend(now);
}

extern "C" void uptier_loop_arrive(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept {
  if (context->loops != nullptr) context->loops->arrive(slab, call->value);
}

}  // namespace uptier::sampler
