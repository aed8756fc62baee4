// LoopTimer: measures the cycles of loop executions on one thread, with a stack of open executions.
//
// loop_words.h describes the words of a loop in a slab. Code counts words 0 and 1 itself. It calls
// enter() when the state falls below zero: at each entry that is drawn, and at every entry while an
// execution of the site is on the stack. In that case it also calls leave().
//
// An execution on the stack is recorded only if its own exit is seen, with the same slab, site and
// frame. If the exit is missed (a trap, another copy, on-stack replacement), the stack entry is
// stale. A stale entry is dropped, and its time of inner loops passes to the entry below it, when
//
// - a frame further out observes anything (frames grow downwards)
// - another method, or a new call of the same function, uses its frame
// - the loop is entered again in the same frame
// - the frame arrives from another copy (arrive), or the owner unwinds (unwind)
//
// A stale entry has not been credited with anything yet. Inclusive cycles are those from entry to
// exit, in any code, less the cost of the probes in between. Exclusive cycles leave out the timed
// loops inside, so inclusive = exclusive + time of inner timed loops. A full stack refuses and
// counts.
//
// Probes: the time of a probe depends on whether it counts, records, or reads the CPU clock; so
// each probe is timed. Executions are measured by a clock that stands still during probes:
//
//     net = (now - spent) at the exit - (now - spent) at the entry - costs
//
// A probe reads the time first and last, and `spent` is the sum of the differences. Only the few
// instructions around the two reads have a constant cost: Costs.
//
// Recursion: an inner execution of the same loop site has its own stack entry, drawn or not. Its
// iterations and cycles are subtracted from the outer one, so the sum over all is the time of the
// outermost. If they are not known, the outer one is not recorded (spoiled).
//
// Followed: while an execution is on the stack, all executions of the site inside of it are timed,
// drawn or not. Two strata after the outermost one was entered, the draws of the current stratum no
// longer affect whether it is on the stack. So each execution is then either timed for certain, or
// drawn with the odds of the level. The former count as 2^-level of a record each, and the latter
// count if they are drawn. So a function that calls itself, such as a sort, is known as well as
// possible, except for its beginning.
//
// History: a processor predicts the branches of a loop from the last few hundred taken branches. In
// a short execution, most of those are the probe's own. They differ between an execution after a
// pause, one of many in a row, and one that is recorded. So the last thing a probe does at an entry
// is to run a loop of that many branches, the same each time.
//
// Alone: the effect of probes on the code around them is not known to the cycle. So an outer
// execution is recorded with no other site timed inside of it, once its site `shares` (other sites
// were timed inside) and its level is at least 1. The inner sites are timed in the tiles that are
// not recorded; draws of inner sites during an outer execution that is timed alone are put off.
// Exceptions: outer executions longer than kApart, since there may be only one, and `records` of
// kEvery, which times everything.
//
// Dual: every execution of the timed loops is timed and summed in words 19 and 20 as well. A
// separate countdown decides which of them the pace would draw, so words 2 to 7 hold the same
// values as without dual mode, for the very same executions. Thus one run shows the error of an
// extrapolated total, free of the differences between runs. Dual mode does not show the effect of a
// pause on short executions, since it has no pauses.
//
// Cycles are those of the time stamp counter, which ticks at a constant rate, read between fences.
// It keeps counting while the thread waits for a processor. The thread's CPU clock does not, but
// costs a system call of some 500 ns; so it is read only where the thread may have been absent:
//
//     away = cycles since the last reading - CPU time since then
//
// (less absences in probes, which are part of `spent`). It is read after an execution of at least
// kLong cycles, after one of at least kStrange that is 16 times as long as usual, before one of a
// loop with a mean of kLong, and before any execution when the last reading is kStale old. The
// growth of `away` is subtracted from the execution. Without a reading at its start, the absence
// since the last reading is attributed to the execution if it fits: the execution is strange, or
// longer than kLong, and others of its site are not. Absences in other executions stay in: each is
// less than kStrange, or less than 16 times the execution it is in.
//
// Compiled without vector instructions, see probe_call.h.
//
// Meter: a host may measure by a counter of its own (LoopMeter, uptier/report.h). Then an execution
// has the value of that counter, unchanged: the host has to subtract absences and the cost of
// probes.
//   Thread: its owner.
#pragma once

#include <cstdint>

#include "sampler/loop_words.h"
#include "sampler/probe_call.h"

namespace uptier::sampler {

// An execution, and how to time it. `extra` of the calls below is packed().
struct LoopKey {
  uint64_t* slab = nullptr;
  uint64_t* words = nullptr;
  uint64_t frame = 0;      // rbp
  uint32_t records = 100;  // 0: counted but not timed, with the same code
  bool function = false;   // the body of a function: its entry means that the frame is new

  static constexpr uint32_t pack(uint32_t records, bool function) {
    return (records & 0x7fffffff) | (function ? 1u << 31 : 0);
  }
};

class LoopTimer {
 public:
  static constexpr uint32_t kDepth = 64;
  // After this many refusals in a row, the whole stack is assumed to be stale.
  static constexpr uint32_t kPatience = 4096;
  static constexpr uint64_t kLong = 200'000;      // cycles: some 50 us
  static constexpr uint64_t kStrange = 8'000;     // cycles: some 2 us
  static constexpr uint64_t kAbsent = 50'000;     // cycles of a probe
  static constexpr uint64_t kStale = 4'000'000;   // cycles: some ms
  static constexpr uint64_t kApart = 10'000'000;  // cycles: longer executions are not timed alone
  static constexpr uint32_t kEvery = 1u << 30;    // `records` of a run that times everything

  // Executions that were not recorded, by reason. Written by the owner, read by any thread.
  struct Losses {
    uint64_t full = 0;     // the stack was full
    uint64_t stale = 0;    // the exit was not seen
    uint64_t spoiled = 0;  // the iterations were not known
  };

  // Cycles that a pair of probes adds, besides `spent`: to the time between them, and to the time
  // around them.
  struct Costs {
    uint64_t inner = 0;
    uint64_t outer = 0;
  };

  // Measures the costs by timing nothing. `pair` is an enter and a leave of the site at word 0 of
  // the slab that it is given, on the timer of the calling thread's context. Returns the least of
  // 256 rounds.
  static Costs measure(void (*pair)(uint64_t* slab), bool dual = false) noexcept;
  // The same for enter and leave themselves, without compiled code around them.
  static Costs measure() noexcept;

  // Without `read`, absences are not detected.
  struct CpuClock {
    uint64_t (*read)() noexcept = nullptr;  // the thread's CPU time, in ns
    uint64_t cycles_per_ns = 0;             // in units of 2^-32

    static CpuClock of_thread(double cycles_per_ns) {
      return {thread_cpu_ns, static_cast<uint64_t>(cycles_per_ns * 0x1p32)};
    }
    static uint64_t thread_cpu_ns() noexcept;
  };

  // See LoopMeter; without `begin`, there is no meter.
  struct Meter {
    uint64_t (*begin)(void* user) noexcept = nullptr;
    uint64_t (*end)(void* user, uint64_t stamp) noexcept = nullptr;
    void* user = nullptr;
  };
  // Call it before anything is timed.
  void set_meter(const Meter& meter) noexcept {
    meter_ = meter;
    if (meter.begin != nullptr) clock_ = {};
  }
  bool is_metered() const noexcept { return meter_.begin != nullptr; }

  // One timed execution: its site, and its cycles without inner executions of the same loop.
  struct Execution {
    const uint64_t* slab;
    const uint64_t* words;
    uint64_t cycles;
  };
  // Keeps the first `room` executions in `to`, which outlives the timer.
  void keep_first(Execution* to, uint32_t room) noexcept { first_ = to, first_room_ = room; }
  // Returns how many are kept; kept executions do not change. Thread: any.
  uint32_t kept() const noexcept {
    return __atomic_load_n(&first_kept_, __ATOMIC_ACQUIRE);  // pairs with keep()
  }

  void set_costs(Costs c) { costs_ = c; }
  Costs costs() const { return costs_; }
  // `now` in cycles.
  void set_clock(const CpuClock& clock, uint64_t now) noexcept;
  void seed(uint64_t random) { random_ = random; }
  // Dual mode requires kLoopDualWords at every timed site.
  void set_dual(bool on) { dual_ = on; }

  // Call it when the state word of the key's site has just fallen below zero, at `now`. Returns
  // whether the execution is timed.
  bool enter(const LoopKey& key, uint64_t now) noexcept;
  // `now` is the time at which the exit was seen.
  void leave(const LoopKey& key, uint64_t now) noexcept;
  // Ends the probe that began at `now`. The caller adds the end time to the returned word.
  uint64_t* spend(uint64_t now) noexcept {
    spent_ -= now;
    return &spent_;
  }
  // Call it when a frame arrives in an instrumented copy from another copy.
  void arrive(const uint64_t* slab, uint64_t frame) noexcept;
  // Drops the entries of frames further in than `frame`. After a trap, `frame` is the stack pointer
  // of the activation that the trap ended in. `UINT64_MAX` drops all.
  void unwind(uint64_t frame) noexcept;

  uint32_t depth() const { return depth_; }
  // Cycles of all probes so far.
  uint64_t spent() const { return spent_; }
  Losses losses() const noexcept {
    return {look(losses_.full), look(losses_.stale), look(losses_.spoiled)};
  }

 private:
  struct Entry {
    uint64_t* slab;
    uint64_t* words;
    uint64_t frame;
    uint64_t start;       // by the clock that stands still during probes
    uint64_t away;        // `away_` at the start
    uint64_t child;       // net cycles of inner timed loops
    uint64_t iterations;  // of the site, at the start
    uint64_t nested;      // iterations since then by inner executions of the site
    uint64_t again;       // net cycles of inner executions of the site
    uint64_t since;       // entries of the site when the outermost on the stack was entered
    uint8_t level;        // it was drawn with the odds 2^-level
    bool paced;           // would be timed without dual mode, too
    bool recorded;        // will be recorded
    bool first;           // the first of its tile
    bool spoiled;
    bool alone;  // nothing else is timed meanwhile
  };

  // The decision about an entry.
  struct Drawn {
    bool paced = false;
    bool recorded = false;
    bool first = false;  // the first of a tile
    uint32_t level = 0;  // of the pace
  };

  static uint64_t look(const uint64_t& n) { return __atomic_load_n(&n, __ATOMIC_RELAXED); }
  static void bump(uint64_t& n) { __atomic_store_n(&n, n + 1, __ATOMIC_RELAXED); }

  Entry& top() { return stack_[depth_ - 1]; }
  void drop() noexcept;
  void drop_to(uint32_t depth) noexcept;
  // Returns the position of the entry of a key in its frame, or depth_.
  uint32_t find(const LoopKey& key) const noexcept;
  // Returns the innermost entry of a site, or null.
  Entry* outer_of(const uint64_t* words) noexcept;
  void spoil(const uint64_t* words) noexcept;
  Drawn draw(const LoopKey& key, const Entry* outer) noexcept;
  // Returns the innermost entry of a site that would be there without dual mode, too, or null.
  const Entry* paced_outer_of(const uint64_t* words) const noexcept;
  // Returns the new entry, or null.
  Entry* push(const LoopKey& key, uint64_t now) noexcept;
  // Call it when the time of the last probe is known: notes an absence in that probe.
  void settle() noexcept;
  // Reads the CPU clock.
  void look_away(uint64_t now) noexcept;
  static uint64_t less_away(uint64_t net, uint64_t away) noexcept;
  void look_away_before(const uint64_t* words, uint64_t now) noexcept;
  void complete(const LoopKey& key, uint64_t now) noexcept;
  // Returns the net cycles of an execution that ends at `now`.
  uint64_t net_of(const Entry& e, uint64_t now) noexcept;
  void keep(const Entry& e, uint64_t cycles) noexcept;
  // Pops the innermost entry and returns it.
  Entry pop() noexcept;
  // Returns the number of entries to skip before the next draw.
  uint64_t put_off_entry(const LoopKey& key) noexcept;
  // Call it when another site was timed within the innermost paced entry, or would be if it were
  // not only counted. Returns false if a later call may still change the pace of that entry.
  bool share(const LoopKey& inner) noexcept;
  // Mean cycles of an execution, so far.
  static uint64_t mean_of(const uint64_t* words) noexcept;
  // Executions of a tile follow each other and are alike, so their sum tells less than the same
  // number of independent draws. The variance of a mean of tiles follows from the deviations d of
  // each tile from the mean: (sum of d)^2 is the sum of the squares plus twice the product of each
  // pair. So these products are added to the sum of squares; the usual formula for single draws
  // then gives the error of tiles (Cochran 1977, 9A.2). The mean is the one known when a tile
  // begins.
  static void record(const Entry& e, uint64_t net, uint64_t iterations) noexcept;
  // An execution that stands for fewer executions than a record of `level` is a part of a record.
  // Sums grow by whole units, and the remainder is carried over; the square is taken of the mean
  // over the parts that make up a record.
  static void record_part(const Entry& e, uint32_t level, uint64_t net,
                          uint64_t iterations) noexcept;

  Entry stack_[kDepth];
  uint32_t depth_ = 0;
  uint32_t refused_ = 0;  // in a row
  uint32_t alone_ = 0;    // entries with nothing else timed inside
  bool dual_ = false;
  uint64_t random_ = 1;
  CpuClock clock_;
  uint64_t away_ = 0;                        // cycles, so far
  uint64_t looked_at_ = 0, looked_cpu_ = 0;  // the last reading, in cycles and ns
  uint64_t spent_ = 0;                       // cycles of all probes
  uint64_t settled_ = 0;                     // before the last one
  uint64_t probes_away_ = 0;                 // absences in probes, since the last reading
  Costs costs_;
  Losses losses_;
  Meter meter_;
  Execution* first_ = nullptr;
  uint32_t first_room_ = 0, first_kept_ = 0;
};

// For compiled code: `value` is the frame, `now` the time at which the routine began
// (jit/code/probe_routines.h). Return LoopTimer::spend, or null if there is no timer.
extern "C" uint64_t* uptier_loop_enter(uint64_t* slab, const ProbeCall* call,
                                       ThreadContext* context, uint64_t now) noexcept;
extern "C" uint64_t* uptier_loop_leave(uint64_t* slab, const ProbeCall* call,
                                       ThreadContext* context, uint64_t now) noexcept;
extern "C" void uptier_loop_arrive(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept;

}  // namespace uptier::sampler
