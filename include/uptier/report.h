// report.h: what the runtime did, as plain data and as a table for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier {

// One decision of the policy, in the order in which they were made.
struct DecisionRecord {
  uint64_t sequence = 0;
  MethodId method;
  std::string method_name;
  // Of the policy: keep, recompile, specialize, roll_back, re_instrument, ban; followed by " osr:n"
  // for code that is entered at loop n. Noticed, and nothing decided: match and drop (a saved
  // profile is of other code), newer (a frame of older code goes round in a loop), set (an option,
  // by Runtime::set or observe; of no method), relay (code was laid anew; likewise).
  std::string action;
  std::string reason;  // in words, with the figures that decided
  uint64_t calls = 0;  // of the method so far, as are the next two
  uint64_t samples = 0;
  uint64_t loop_iterations = 0;
  double priority = 0;  // of the compilation asked for: the greatest is made first
  // All that the answer depends on but for the options, "name=value" with spaces between, for
  // replay() of policy.h; empty where something was noticed and nothing asked.
  std::string inputs;
};

// One compiled body, in service or not any more.
struct VersionReport {
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop;  // the loop at which it is entered; none for a normal version
  uint64_t code_bytes = 0;
  uint64_t compile_ns = 0;
  bool retired = false;
  bool freed = false;
  uint32_t inlined = 0;  // bodies of callees that stand in the place of calls
};

// Where the schedule is with a method. kLearning: it is sampled; kKnown: its profile is near enough
// the truth, and it is left alone; kLooking: it is sampled for a while to see whether that still
// holds; kOff: it is not sampled at all (optimized, or a tier mode without samples).
enum class Observing : uint8_t { kOff, kLearning, kKnown, kLooking };
// Returns "off", "learning", "known" or "looking".
const char* observing_name(Observing o);

// One callee of an indirect call, or one value of a value probe.
struct TopEntry {
  std::string name;  // of the callee; empty for a value
  int64_t value = 0;
  double estimate = 0;  // executions, estimated
  double share = 0;     // of the site's
};

// What was seen at one site that is not control flow and not a loop.
struct SiteReport {
  static constexpr size_t kTop = 4;

  SlotKind kind = SlotKind::kCallTarget;
  SiteId site = 0;
  double estimate = 0;         // executions (counter: what the host added), estimated; gauge: 0
  std::vector<TopEntry> top;   // the greatest first, at most kTop: call targets and values
  std::optional<int64_t> min;  // of values and ranges
  std::optional<int64_t> max;
  uint64_t gauge = 0;  // the last value, kGauge
  uint64_t lost = 0;   // records overwritten unread, kLog
};

// A place where compiled code was left for plainer code: a guard, or a block that was taken never
// to run. Counts are over all versions of the method.
struct ExitReport {
  SiteId block = 0;    // the block's site
  uint32_t guard = 0;  // the guard's number in build order, from 1; 0: the block's start, or
                       // (kValue) the guard in front of a version for some values of the parameters
  GuardReason reason = GuardReason::kUnreached;
  uint32_t location = 0;  // of the guard
  uint64_t exits = 0;     // stress does not count
  uint32_t retries = 0;   // times that the limit was met
  bool banned = false;    // not speculated on any more
};

// What is known of one method: counts as of the last flush of each thread, for all of its versions.
struct MethodReport {
  MethodId method;
  MethodKey key;
  std::string name;
  uint64_t hash = 0;        // of key and name: what Options::opt_range selects by
  Tier tier = Tier::kHost;  // of the code that calls reach now
  uint64_t calls = 0;  // counted by the stub, which optimized code passes by (see MethodProfile)
  uint64_t sampled_calls = 0;
  uint64_t loop_iterations = 0;  // counted by the checks at loop headers
  uint64_t bursts = 0;           // sampled stretches of iterations
  uint64_t flushes = 0;
  uint64_t osr_entries = 0;  // into compiled code in the middle of a call, at a loop header
  // Frames, each as often as it happened to it: of older optimized code that went on in newer, at a
  // loop header; and of compiled code that were left for plainer code or for the host. Counted at
  // once, not at flushes.
  uint64_t osr_outs = 0;
  uint64_t left = 0;
  uint64_t left_for_host = 0;  // of these, frames that went to MethodInfo::host_resume
  Observing observing = Observing::kOff;
  uint64_t interval = 0;  // mean gap between samples from here on; 0: none are taken
  // How far the profile is from the truth at most (odds 95 %, as a share of all executions): 0..1.
  // Nothing while too little is known, or while rates are fixed.
  std::optional<double> error_bound;
  // With counters=dual: sum |approximate - exact| / sum exact of the counters of flow.
  std::optional<double> dual_error;
  std::vector<SiteReport> sites;  // those that saw something, most executions first
  std::vector<ExitReport> exits;  // those that were taken, in build order, guards first
  std::vector<VersionReport> versions;
  // Whether optimized code that counts nothing was in service, its own or that of a method which has
  // its body inlined: calls, and estimates of what runs in them, may then be below the truth.
  bool behind = false;
  std::string last_error;  // of a compilation that failed; the method runs on in what it has

  // Whether a flush has seen it run.
  bool called() const { return calls != 0 || loop_iterations != 0; }
};

// What loops are measured by (Options::loops) instead of the processor's cycles: a counter of the
// host's, such as instructions, cache misses, or ticks of a simulator.
//
//   begin   returns a stamp, when an execution that is measured begins
//   end     returns what has gone by since the stamp, in `unit`s, when it ends
//
// Executions nest, each with a stamp of its own. What was measured inside is part of what is around
// it, so the measure must not run backwards; what the functions themselves add to it stays in. They
// are called from instrumented copies only, on the thread that runs the loop, and must not call the
// runtime, block for long or throw.
struct LoopMeter {
  std::string unit = "cycles";  // of what `end` returns
  uint64_t (*begin)(void* user) noexcept = nullptr;
  uint64_t (*end)(void* user, uint64_t stamp) noexcept = nullptr;
  void* user = nullptr;
};

// A loop that instrumented copies time (Options::loops), or with loop_functions a function's body.
struct LoopReport {
  MethodId method;
  MethodKey key;
  std::string name;     // of the method
  LoopId loop;          // numbered in build order from 0 in each method; none for the body
  LoopId parent;        // the next loop outwards in the method, timed or not, or none
  uint32_t depth = 0;   // 0: outermost
  uint32_t height = 0;  // 0: innermost
  std::optional<uint32_t> location;  // of its header: FunctionBuilder::set_location; 0 is none
  // Where its code begins and ends in the instrumented copy, in bytes from the copy's entry; both
  // are 0 when there has been none.
  uint32_t start_offset = 0;
  uint32_t end_offset = 0;
  // Estimated for all executions; `timed` of them were timed. As MethodProfile::loop_cycles has it;
  // nothing when executions were seen but none was timed.
  double entries = 0;
  double iterations = 0;
  uint64_t timed = 0;
  std::string unit = "cycles";  // of all that is called cycles here: LoopMeter::unit
  std::optional<Estimate> cycles;
  // Less the cycles of the timed loops inside of it in the same method, and not below 0; calls are
  // included, with the loops of callees.
  std::optional<double> exclusive_cycles;
  // Of the cycles that threads have been attached for. Executions inside of others of the same loop
  // (recursion) are in both; shares of loops of callers and callees overlap.
  double share = 0;
  // With loop_dual: what all executions took, each timed by itself, and those that `cycles` is
  // extrapolated from among them. Of executions whose end was not seen, what others took.
  std::optional<double> exact_cycles;
};

// One execution of a loop, or of a function's body, as it was timed (Runtime::keep_loop_executions).
struct LoopExecution {
  MethodId method;
  LoopId loop;                // none for the body
  uint32_t start_offset = 0;  // as in LoopReport
  uint64_t cycles = 0;        // of it alone, or LoopReport::unit
  uint32_t thread = 0;        // number of the attachment, from 1
};

// What one visit of a log probe saw (ProbeKind::kLog).
struct LogRecord {
  MethodId method;
  SiteId site = 0;      // as in the method's Schema
  uint32_t tag = 0;     // as FunctionBuilder::probe was given it
  uint64_t value = 0;   // as ProbeKind has it
  uint64_t cycles = 0;  // time stamp counter: of one clock for all threads, in order for each
  uint32_t thread = 0;  // number of the attachment, from 1

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

// Everything that was lost or refused, so that nothing is hidden.
struct LossReport {
  uint64_t samples_without_copy = 0;  // due while the instrumented copy was not ready
  uint64_t slabs_refused = 0;         // slab_budget spent
  uint64_t flushes_delayed = 0;       // ring full; the next snapshot carries the counts
  // Memory was refused to what a thread had counted of a method. The next snapshot carries it, if there
  // is one.
  uint64_t flushes_lost = 0;
  uint64_t requests_dropped = 0;  // queue full
  uint64_t compiles_failed = 0;
  uint64_t code_refused = 0;   // code_budget spent
  uint64_t evictions = 0;      // methods that gave up their code for others; made again when called
  uint64_t polls_refused = 0;  // versions whose loops cannot be left for newer code: no words left
  // What is not known any more, so that a long life takes no more memory than a short one: removed
  // methods whose places others have (Options::removed_kept), decisions (decisions_kept) and freed
  // versions; the oldest go first.
  uint64_t methods_forgotten = 0;
  uint64_t decisions_forgotten = 0;
  uint64_t versions_forgotten = 0;
  // Made on threads that are not attached, by entries: the calls were counted here and nowhere else,
  // what ran in them nowhere. About: such threads count together.
  uint64_t calls_unattached = 0;
  uint64_t keys_shared = 0;      // methods whose key another one with another name or body has
  uint64_t unstable_bodies = 0;  // methods that were described differently each time, and given up
  uint64_t traps_lost = 0;  // raised where nobody looked for one before the outermost invoke ended
  uint64_t trace_events_lost = 0;  // the sink returned an error
  uint64_t log_records = 0;        // overwritten before read_log() took them
  uint64_t code_names_lost =
      0;  // bodies of code that the file of perf_map or jit_dump does not have
  // Executions of loops that were counted but not timed, when they were to be:
  uint64_t loops_full = 0;     // more were under way than a thread keeps track of
  uint64_t loops_stale = 0;    // their end was not seen (a trap, another copy)
  uint64_t loops_spoiled = 0;  // recursion hid whose iterations they were
};

// How often a kind of stress switch was met, and forced something: a stress run in which nothing was
// forced tested nothing.
struct StressCount {
  std::string kind;  // as in Options::stress
  uint64_t points = 0;
  uint64_t forced = 0;
};

// How often code was laid anew side by side (Options::relay_code), and what it took.
struct RelayReport {
  uint64_t relays = 0;
  uint64_t bodies = 0;        // that were moved
  uint64_t bytes = 0;         // of them
  uint64_t pages_before = 0;  // with code, at the last one, and
  uint64_t pages_after = 0;   // when all that was moved has been freed
  uint64_t ns = 0;            // of moving
  uint64_t looks = 0;         // whether there was something to move
  uint64_t look_ns = 0;       // that these took

  friend bool operator==(const RelayReport&, const RelayReport&) = default;
};

// What became of a profile that outlived an earlier process (Options::profile).
struct SavedReport {
  std::string file;        // empty without one
  std::string problem;     // why it was not, or not wholly, read; empty if all is well
  uint64_t runs = 0;       // that it sums up
  uint64_t methods = 0;    // whose profile was there and right
  uint64_t recovered = 0;  // of these, found under another module by name and code
  uint64_t matched = 0;    // of these, of other code, matched by their call sites
  uint64_t stale = 0;      // whose profile was of other code: dropped
  uint64_t compiled = 0;   // optimized at their first call because of it
};

// What a runtime did: a value, which stays as it is when the runtime goes on.
struct Report {
  // Those that have run, were compiled or failed to be, most calls and loop iterations first.
  std::vector<MethodReport> methods;
  // In order; the last Options::decisions_kept, so the first has the sequence 1 only where
  // losses.decisions_forgotten is 0.
  std::vector<DecisionRecord> decisions;
  LossReport losses;
  std::vector<StressCount> stress;  // the kinds that were asked for
  SavedReport saved;
  RelayReport relay;
  uint64_t methods_registered = 0;
  uint64_t code_bytes_in_service = 0;
  uint64_t code_bytes_freed = 0;
  uint64_t compile_ns_total = 0;  // of compilations that succeeded
  // What the optimizing compiler is taken to cost an IR instruction: as assumed, and then as
  // measured (processor time).
  double compile_rate_ns = 0;
  // What the budget has measured instrumentation to cost, of the threads' processor time. Nothing
  // without a budget.
  std::optional<double> overhead_share;

  // Returns how many of `methods` a flush has seen run.
  uint64_t methods_called() const;
  // Returns the report as a table for people, `methods_shown` methods at most (0: all).
  std::string text(size_t methods_shown = 30) const;
};

}  // namespace uptier
