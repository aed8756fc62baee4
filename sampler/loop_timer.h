// LoopTimer: cycles of loop executions on one thread, by a stack of those that are under way.
//
// The words of a loop in a slab are those of loop_words.h. Code counts words 0 and 1 itself, and
// calls enter when the state falls below zero: at each entry that is drawn, and at all while an
// entry of the site is on the stack. It calls leave while one is.
//
// An entry on the stack is recorded only if its own exit is seen, by the same slab, site and frame.
// Whoever misses an exit (a trap, another copy, OSR) leaves a stale entry behind. It is dropped,
// and what it knows of timed loops inside it passes on to the entry below, when
//
//   - a frame further out observes anything (frames grow downwards)
//   - another method, or the same function afresh, uses its frame
//   - the loop is entered again in the same frame
//   - the frame arrives from another copy (arrive), or the owner unwinds (unwind)
//
// In each case nothing was credited for it yet. Inclusive cycles are those from entry to exit, in
// whatever code, less the cost of the probes in between; exclusive ones leave out the timed loops
// inside, so inclusive = exclusive + what was timed inside. A full stack refuses and counts.
//
// Probes: what one takes depends on what it does, which may be to count, to record, or to read the
// CPU clock; so each is timed. Executions are measured by a clock that stands still meanwhile:
//
//     net = (now - spent) at the exit - (now - spent) at the entry - costs
//
// A probe takes the time first of all and last of all, and `spent` is the sum of what lies between.
// What is constant are the few instructions around that: Costs.
//
// Recursion: an inner execution of the same loop site has its own entry, drawn or not, and its
// iterations and cycles are taken off the outer one: the sum over all is what the outermost took.
// Where they cannot be known the outer one is not recorded (spoiled).
//
// Followed: while an execution is on the stack, all that are entered inside of it are timed, whether
// drawn or not. Once two strata have passed since the outermost of them was entered, the draws of
// the present stratum have no part in its being there; so each execution is then one of those that
// are timed for certain, or one of those that are drawn with the odds of the level. The former are
// 2^-level of a record each, and the latter count if they are drawn. So a sort that calls itself is
// known as well as it can be: all of it but the beginning.
//
// History: what a processor predicts of a loop's branches depends on the last some hundred branches
// that were taken, of which the probe's own are most where an execution is short; and these differ
// between an execution after a pause, one of many in a row, and one that is recorded. So the last
// that a probe does at an entry is a loop of that many branches, the same each time.
//
// Alone: what probes do to the code around them is not known to a cycle, so an outer execution is
// recorded with no other site timed inside of it, once its site `shares` (some were) and its level
// is 1 at least: in the tiles that are not recorded the inner ones have their turn, and what is drawn
// of them while an outer one is alone is put off. Exempt: outer ones above kApart, of which there may be only
// one, and `records` of kEvery, which asks for all there is of all.
//
// Dual: every execution of the loops that are timed is timed, and summed up in words 19 and 20. Which
// of them the pace would draw follows from a countdown of its own, so words 2 to 7 hold what they
// would hold of the very same executions without: how far an extrapolated total is off can be read
// off one run, and whatever differs from run to run has no part in it. It does not show what a pause
// does to short executions, since there is none.
//
// Cycles are of the time stamp counter, which ticks at a constant rate, read between fences. It
// runs on while the thread waits for a processor. The thread's CPU clock does not, but costs a
// system call of some 500 ns; so it is read where an absence may be:
//
//     away = cycles since the last reading - CPU time since then
//
// (less absences in probes, which `spent` has) is read after an execution of kLong cycles or more,
// after one of kStrange or more that is 16 times as long as usual, before one of a loop whose
// executions are kLong on average, and before any when the last reading is kStale old; an execution
// is worth its cycles less what `away` grew by. Without a reading at its start, absence since the
// last one is counted as within the execution if it fits in there: it is strange, or longer than
// kLong, and the others of its site are not. Absences in other executions stay in: each is less than
// kStrange, or than 16 of what it is in.
//
// Compiled without vector instructions, see probe_call.h.
//
// Meter: a host may measure by a counter of its own (LoopMeter, uptier/report.h). Then an execution is
// what that says, as it is: nothing is subtracted, absences and costs of probes are the host's affair.
//
//   Thread: its own.
#pragma once

#include <cstdint>

#include "sampler/loop_words.h"
#include "sampler/probe_call.h"

namespace uptier::sampler {

// Which execution, and by which rules. `extra` of the calls below is packed().
struct LoopKey {
  uint64_t* slab = nullptr;
  uint64_t* words = nullptr;
  uint64_t frame = 0;      // rbp
  uint32_t records = 100;  // 0: none is timed, in the same code
  bool function = false;   // the body of a function: its entry means that the frame is new

  static constexpr uint32_t pack(uint32_t records, bool function) {
    return (records & 0x7fffffff) | (function ? 1u << 31 : 0);
  }
};

class LoopTimer {
 public:
  static constexpr uint32_t kDepth = 64;
  // Refusals in a row after which the whole stack is taken for stale.
  static constexpr uint32_t kPatience = 4096;
  static constexpr uint64_t kLong = 200'000;      // cycles: some 50 us
  static constexpr uint64_t kStrange = 8'000;     // cycles: some 2 us
  static constexpr uint64_t kAbsent = 50'000;     // cycles of a probe
  static constexpr uint64_t kStale = 4'000'000;   // cycles: some ms
  static constexpr uint64_t kApart = 10'000'000;  // cycles: longer ones are not timed alone
  static constexpr uint32_t kEvery = 1u << 30;    // `records` of a run that times all there is

  // Executions that were not recorded, by reason. Written by the owner, read by any thread.
  struct Losses {
    uint64_t full = 0;     // the stack was full
    uint64_t stale = 0;    // the exit was not seen
    uint64_t spoiled = 0;  // the iterations were not known
  };

  // Cycles that a pair of probes adds, besides `spent`, to what lies between them, and to what is
  // around them.
  struct Costs {
    uint64_t inner = 0;
    uint64_t outer = 0;
  };

  // Measures the costs by timing nothing, `pair` being an enter and a leave of the site at words 0
  // of the slab that it is given, on the timer of the calling thread's context. The least of 256
  // rounds.
  static Costs measure(void (*pair)(uint64_t* slab), bool dual = false) noexcept;
  // The same for enter and leave themselves, without compiled code around them.
  static Costs measure() noexcept;

  // Without `read` nothing is known of absences.
  struct CpuClock {
    uint64_t (*read)() noexcept = nullptr;  // the thread's CPU time, in ns
    uint64_t cycles_per_ns = 0;             // in units of 2^-32

    static CpuClock of_thread(double cycles_per_ns) {
      return {thread_cpu_ns, static_cast<uint64_t>(cycles_per_ns * 0x1p32)};
    }
    static uint64_t thread_cpu_ns() noexcept;
  };

  // As LoopMeter; none without `begin`.
  struct Meter {
    uint64_t (*begin)(void* user) noexcept = nullptr;
    uint64_t (*end)(void* user, uint64_t stamp) noexcept = nullptr;
    void* user = nullptr;
  };
  // Before anything is timed.
  void set_meter(const Meter& meter) noexcept {
    meter_ = meter;
    if (meter.begin != nullptr) clock_ = {};
  }
  bool is_metered() const noexcept { return meter_.begin != nullptr; }

  // One execution as it was timed: whose words it is of, and its cycles without inner executions of
  // the same loop.
  struct Execution {
    const uint64_t* slab;
    const uint64_t* words;
    uint64_t cycles;
  };
  // Keeps the first `room` executions in `to`, which outlives the timer.
  void keep_first(Execution* to, uint32_t room) noexcept { first_ = to, first_room_ = room; }
  // Returns how many there are; these do not change. Thread: any.
  uint32_t kept() const noexcept {
    return __atomic_load_n(&first_kept_, __ATOMIC_ACQUIRE);  // pairs with keep()
  }

  void set_costs(Costs c) { costs_ = c; }
  Costs costs() const { return costs_; }
  // `now` in cycles.
  void set_clock(const CpuClock& clock, uint64_t now) noexcept;
  void seed(uint64_t random) { random_ = random; }
  // Every site that is timed must have kLoopDualWords.
  void set_dual(bool on) { dual_ = on; }

  // The state word of the key's site has just fallen below zero, at `now`. Returns whether the
  // execution is timed.
  bool enter(const LoopKey& key, uint64_t now) noexcept;
  // `now` is when the exit was seen.
  void leave(const LoopKey& key, uint64_t now) noexcept;
  // The probe that began at `now` ends: returns what the time at its end is added to.
  uint64_t* spend(uint64_t now) noexcept {
    spent_ -= now;
    return &spent_;
  }
  // The frame goes on in an instrumented copy, coming from another one.
  void arrive(const uint64_t* slab, uint64_t frame) noexcept;
  // Drops what lies further in than `frame`; after a trap, with the stack pointer of the activation
  // that it ended in. `UINT64_MAX` drops all.
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
    uint64_t start;       // by the clock that probes stop
    uint64_t away;        // at the start
    uint64_t child;       // net cycles of timed loops inside
    uint64_t iterations;  // of the site at the start
    uint64_t nested;      // of those since, done by inner executions
    uint64_t again;       // net cycles of inner executions of the site
    uint64_t since;       // entries of the site when the outermost on the stack was entered
    uint8_t level;        // it was drawn with the odds 2^-level
    bool paced;           // timed without dual mode, too
    bool recorded;        // to be
    bool first;           // of its tile
    bool spoiled;
    bool alone;  // nothing else is timed meanwhile
  };

  // What becomes of an entry that was seen.
  struct Drawn {
    bool paced = false;
    bool recorded = false;
    bool first = false;  // of a tile
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
  // Returns the innermost entry of a site that is there without dual mode, too, or null.
  const Entry* paced_outer_of(const uint64_t* words) const noexcept;
  // Returns the entry that was made, or null.
  Entry* push(const LoopKey& key, uint64_t now) noexcept;
  // What the last probe took is known: notes an absence in it.
  void settle() noexcept;
  // Reads the CPU clock.
  void look_away(uint64_t now) noexcept;
  static uint64_t less_away(uint64_t net, uint64_t away) noexcept;
  void look_away_before(const uint64_t* words, uint64_t now) noexcept;
  void complete(const LoopKey& key, uint64_t now) noexcept;
  // Returns the net cycles of an execution that ends at `now`.
  uint64_t net_of(const Entry& e, uint64_t now) noexcept;
  void keep(const Entry& e, uint64_t cycles) noexcept;
  // Takes the innermost entry off the stack, and returns what it was.
  Entry pop() noexcept;
  // Returns the entries that pass before the next that is drawn.
  uint64_t put_off_entry(const LoopKey& key) noexcept;
  // Something else was timed within the innermost entry that is paced, or would be if it were not
  // only counted. Returns false where that may change its pace another time.
  bool share(const LoopKey& inner) noexcept;
  // Cycles of an execution, so far.
  static uint64_t mean_of(const uint64_t* words) noexcept;
  // Executions of a tile follow each other and are alike, so their sum tells less than as many
  // drawn one by one. What a mean of such tiles is worth follows from the sums of deviations d from
  // it in each: (sum of d)^2 is what squares of d come to, and twice the product of each two. So that
  // comes on top of the sum of squares, and whoever takes that for one of single draws gets the error
  // of tiles (Cochran 1977, 9A.2). The mean is what is known of it when a tile begins.
  static void record(const Entry& e, uint64_t net, uint64_t iterations) noexcept;
  // What stands for fewer executions than a record of `level` does is a part of one. Sums grow by
  // whole units, and what is left waits; the square is that of the mean of what makes up a record.
  static void record_part(const Entry& e, uint32_t level, uint64_t net,
                          uint64_t iterations) noexcept;

  Entry stack_[kDepth];
  uint32_t depth_ = 0;
  uint32_t refused_ = 0;  // in a row
  uint32_t alone_ = 0;    // entries that nothing else is timed in
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

// For compiled code: `value` is the frame, `now` when the routine began (jit/code/probe_routines.h).
// Return LoopTimer::spend, or null without a timer.
extern "C" uint64_t* uptier_loop_enter(uint64_t* slab, const ProbeCall* call,
                                       ThreadContext* context, uint64_t now) noexcept;
extern "C" uint64_t* uptier_loop_leave(uint64_t* slab, const ProbeCall* call,
                                       ThreadContext* context, uint64_t now) noexcept;
extern "C" void uptier_loop_arrive(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept;

}  // namespace uptier::sampler
