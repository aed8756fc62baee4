// Compiled with -mgeneral-regs-only: see loop_timer.h.
#include "sampler/loop_timer.h"

#include <sys/syscall.h>
#include <time.h>

#include "sampler/context.h"

namespace uptier::sampler {
namespace {

__extension__ using Uint128 = unsigned __int128;

// As the routines of compiled code take it: what lies before is done, what lies behind not begun.
uint64_t cycles_now() noexcept {
  asm volatile("lfence" ::: "memory");
  uint64_t now = __builtin_ia32_rdtsc();
  asm volatile("lfence" ::: "memory");
  return now;
}

uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

constexpr uint64_t kFew = 8;  // records
// What branch predictors have to learn anew after a pause is much of a short execution. A loop that
// is timed alone has longer tiles, so that those inside, which wait meanwhile, find room for theirs
// between two of them. A run never becomes shorter: what is left of one is to be recorded.
LoopPace::Tile tile_of(const uint64_t* words) {
  auto below = [words](uint64_t cycles) { return words[kLoopCycles] / cycles < words[kLoopTimed]; };
  LoopPace::Tile tile{8, 4};
  if (below(1000)) tile = {8, 64};
  if (below(300)) tile = {8, 190};
  if (LoopPace::of(words).shares) tile.run = 64;
  return tile;
}

}  // namespace

// ---- Absences ---------------------------------------------------------------------------------

// The system call itself: the C library's function may use vector registers.
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
  if (clock_.read == nullptr) return;
  look_cost_ = UINT64_MAX;
  for (int i = 0; i < 16; ++i) {
    uint64_t before = cycles_now();
    looked_cpu_ = clock_.read();
    uint64_t cost = cycles_now() - before;
    if (cost < look_cost_) look_cost_ = cost;
  }
}

void LoopTimer::look_away(uint64_t now) noexcept {
  uint64_t cpu = clock_.read();
  auto used = static_cast<uint64_t>(Uint128{cpu - looked_cpu_} * clock_.cycles_per_ns >> 32);
  away_ += less(now - looked_at_, used);
  looked_at_ = now;
  looked_cpu_ = cpu;
}

void LoopTimer::look_away_before(const uint64_t* words, uint64_t now) noexcept {
  if (clock_.read == nullptr) return;
  bool is_long = words[kLoopCycles] > words[kLoopTimed] * kLong;
  if (now - looked_at_ <= (is_long ? kLong / 16 : kStale)) return;
  look_away(now);
  if (depth_ != 0) top().overhead += look_cost_;
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
    top().overhead += e.overhead;
    if (top().words == e.words) top().again += e.again;
  }
  spoil(e.words);  // how many iterations were its own is not known
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

// Its cost is about half of a pair's.
void LoopTimer::put_off_entry(const LoopKey& key) noexcept {
  LoopPace pace = LoopPace::of(key.words);
  key.words[kLoopState] += 1 + put_off(pace, tile_of(key.words), random_);
  pace.store(key.words);
  top().overhead += costs_.outer / 2;
}

void LoopTimer::share(const LoopKey& inner) noexcept {
  Entry& e = top();
  uint64_t* w = e.words;
  if (!e.recorded || e.alone || w == inner.words || inner.records >= kEvery) return;
  LoopPace pace = LoopPace::of(w);
  // The level that rises drops what there is, of which there should be some.
  bool few = w[kLoopTimed] < kFew;
  if (pace.shares || few || w[kLoopCycles] > w[kLoopTimed] * kApart) return;
  pace.shares = true;
  pace.store(w);
  if (pace.level == 0) halve_loop(w);
}

LoopTimer::Entry* LoopTimer::push(const LoopKey& key, uint64_t now) noexcept {
  unwind(key.frame);
  while (depth_ != 0 && top().frame == key.frame && (key.function || top().slab != key.slab)) {
    drop();
  }
  drop_to(find(key));
  uint64_t& state = key.words[kLoopState];
  if (key.records == 0) {
    state += kEvery;
    return nullptr;
  }
  uint64_t open = loop_open(state);
  LoopPace pace = LoopPace::of(key.words);
  uint32_t level = pace.drawn_at;
  bool recorded = false;
  if (state + open * kOneOpen == UINT64_MAX) {
    if (alone_ != 0 && open == 0) {
      put_off_entry(key);
      return nullptr;
    }
    state += 1 + pace.take(tile_of(key.words), random_, recorded);
    pace.store(key.words);
  } else if (open == 0) {
    return nullptr;  // what made it be seen was stale
  }
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
  e.child = e.overhead = e.nested = e.again = 0;
  e.iterations = key.words[kLoopIterations];
  e.level = level;
  e.recorded = recorded;
  e.spoiled = false;
  e.alone = recorded && level != 0 && pace.shares &&
            key.words[kLoopCycles] <= key.words[kLoopTimed] * kApart;
  alone_ += e.alone ? 1 : 0;
  return &e;
}

uint64_t* LoopTimer::enter(const LoopKey& key) noexcept {
  Entry* e = push(key, __builtin_ia32_rdtsc());
  return e == nullptr ? nullptr : &e->start;
}

void LoopTimer::enter(const LoopKey& key, uint64_t now) noexcept {
  if (Entry* e = push(key, now)) e->start = now;
}

void LoopTimer::leave(const LoopKey& key, uint64_t now) noexcept {
  unwind(key.frame);
  uint32_t at = find(key);
  if (at == depth_ || stack_[at].slab != key.slab) return;
  drop_to(at + 1);
  complete(key, now);
}

void LoopTimer::complete(const LoopKey& key, uint64_t now) noexcept {
  Entry& open = top();
  uint64_t net = less(now - open.start, costs_.inner + open.overhead), look = 0;
  if (net >= kLong && clock_.read != nullptr) {
    look_away(now);
    look = look_cost_;
    uint64_t away = away_ - open.away;
    if (away <= net) net -= away;
  }
  if (net < open.child) net = open.child;  // the costs that were subtracted are an estimate
  Entry e = pop();
  uint64_t iterations = e.words[kLoopIterations] - e.iterations;
  if (depth_ != 0) {
    top().child += net;
    top().overhead += e.overhead + costs_.outer + look;
    share(key);
  }
  Entry* outer = loop_open(e.words[kLoopState]) != 0 ? outer_of(e.words) : nullptr;
  if (outer != nullptr) {
    outer->nested += iterations;
    outer->again += net;
    outer->spoiled |= e.spoiled;
  }
  if (!e.recorded) return;
  if (e.spoiled) {
    bump(losses_.spoiled);
  } else if (keeps(e.words, e.level, random_)) {
    record(e, net, iterations - e.nested);
    widen_loop(e.words, key.records);
  }
}

void LoopTimer::record(const Entry& e, uint64_t net, uint64_t iterations) noexcept {
  uint64_t* w = e.words;
  uint64_t own = less(net, e.again);
  ++w[kLoopTimed];
  w[kLoopTimedIterations] += iterations;
  w[kLoopCycles] += own;
  w[kLoopExclusive] += net - e.child;
  Uint128 squares = Uint128{w[kLoopSquaresHigh]} << 64 | w[kLoopSquaresLow];
  squares += Uint128{own} * own;
  w[kLoopSquaresLow] = static_cast<uint64_t>(squares);
  w[kLoopSquaresHigh] = static_cast<uint64_t>(squares >> 64);
}

void LoopTimer::arrive(const uint64_t* slab, uint64_t frame) noexcept {
  unwind(frame);
  while (depth_ != 0 && top().frame == frame) drop();
  for (uint32_t i = 0; i < depth_; ++i) {
    if (stack_[i].slab == slab) stack_[i].spoiled = true;
  }
}

// ---- Costs ------------------------------------------------------------------------------------

namespace {

constexpr uint32_t kRounds = 256;

template <typename Pair>
LoopTimer::Costs least_costs(Pair pair) noexcept {
  uint64_t slab[kLoopWords] = {};
  LoopTimer::Costs least{UINT64_MAX, UINT64_MAX};
  uint64_t reading = UINT64_MAX;  // the cost of reading the counter
  for (uint32_t i = 0; i < kRounds; ++i) {
    uint64_t seen = slab[kLoopCycles];
    uint64_t before = cycles_now(), between = cycles_now();
    pair(slab);
    uint64_t after = cycles_now();
    if (between - before < reading) reading = between - before;
    uint64_t inner = slab[kLoopCycles] - seen, outer = after - between;
    if (inner < least.inner) least.inner = inner;
    if (outer < least.outer) least.outer = outer;
  }
  least.outer = less(least.outer, reading);
  return least;
}

}  // namespace

LoopTimer::Costs LoopTimer::measure(void (*pair)(uint64_t* slab)) noexcept {
  LoopTimer timer;
  ThreadContext& context = *current_context();
  LoopTimer* before = context.loops;
  context.loops = &timer;
  Costs c = least_costs(pair);
  context.loops = before;
  return c;
}

LoopTimer::Costs LoopTimer::measure() noexcept {
  LoopTimer timer;
  return least_costs([&timer](uint64_t* slab) {
    LoopKey key{slab, slab, reinterpret_cast<uintptr_t>(slab), INT32_MAX, false};
    --slab[kLoopState];
    if (uint64_t* start = timer.enter(key)) *start = cycles_now();
    timer.leave(key, cycles_now());
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
                                       ThreadContext* context) noexcept {
  return context->loops == nullptr ? nullptr : context->loops->enter(key_of(slab, call));
}

extern "C" void uptier_loop_leave(uint64_t* slab, const ProbeCall* call, ThreadContext* context,
                                  uint64_t now) noexcept {
  if (context->loops != nullptr) context->loops->leave(key_of(slab, call), now);
}

extern "C" void uptier_loop_arrive(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept {
  if (context->loops != nullptr) context->loops->arrive(slab, call->value);
}

}  // namespace uptier::sampler
