// report.h: what the runtime did, as plain data and as a table for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/image.h"
#include "uptier/positions.h"
#include "uptier/profile.h"
#include "uptier/stack_time.h"

namespace uptier {

// One decision of the policy, in the order in which they were made.
struct DecisionRecord {
  uint64_t sequence = 0;
  MethodId method;
  std::string method_name;
  // Decisions: keep, recompile (optimize without the profile), specialize (optimize with it, or for
  // a value), roll_back (an optimized version is taken out of service), ban (an assumption is not
  // made again), re_instrument (the profile has drifted; sampling starts again); followed by
  // " osr:n" for code that is entered at loop n. Events that are no decisions: match (a saved
  // profile of other code was matched to this code), drop (it could not be used), osr_out (a frame
  // of older code loops while newer code exists), find (a stack sample was in the method for the
  // first time; Options::find), set (an option was changed by Runtime::set or observe; has no
  // method), relay (code was moved; has no method).
  std::string action;
  std::string reason;  // in words, with the figures that decided
  uint64_t calls = 0;  // of the method so far; likewise the next two
  uint64_t samples = 0;
  uint64_t loop_iterations = 0;
  double priority = 0;  // of the requested compilation; the greatest is compiled first
  // Everything that the answer depends on except the options, as "name=value" separated by spaces,
  // for replay() of policy.h. Empty for an event, for re_instrument, and for a keep whose reason is
  // that the profile has converged.
  std::string inputs;
  // Of the exit or loop that it is about, in the method; 0: none, or the reason names its position.
  uint32_t location = 0;
  SourcePositions source =
      {};  // of the location; in reports only (a subscriber calls Runtime::positions)
};

// One compiled body, in service or retired.
struct VersionReport {
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop;  // the loop where it is entered; none for a normal version
  uint64_t code_bytes = 0;
  uint64_t compile_ns = 0;
  bool retired = false;
  bool freed = false;
  uint32_t inlined = 0;  // bodies of callees that replaced calls
  uint64_t probe_bytes =
      0;  // of its rows of blocks (Options::probe_table); they lie beside the code
  // Its serial number, as in records of events and in the names that perf and gdb show; unique in the
  // runtime's life.
  uint64_t version = 0;
};

// The state of the sampling of a method. kLearning: it is sampled. kKnown: its profile has
// converged (Options::epsilon), so it is sampled ever more rarely, then not at all. kLooking: it is
// sampled for a while, to check that the profile still holds. kOff: it is not sampled (optimized,
// or a tier mode without samples).
enum class Observing : uint8_t { kOff, kLearning, kKnown, kLooking };
// Returns "off", "learning", "known" or "looking".
const char* observing_name(Observing o);

// One callee of an indirect call, or one value of a value probe.
struct TopEntry {
  std::string name;  // of the callee; empty for a value
  int64_t value = 0;
  double estimate = 0;  // executions, estimated
  double share = 0;     // of the site's executions
};

// Observations at one site, other than control flow and loops.
struct SiteReport {
  static constexpr size_t kTop = 4;

  SlotKind kind = SlotKind::kCallTarget;
  SiteId site = 0;
  double estimate = 0;         // estimated executions (counter: the estimated sum that the host
                               // added); gauge: 0
  std::vector<TopEntry> top;   // the greatest first, at most kTop: call targets and values
  std::optional<int64_t> min;  // of values and ranges
  std::optional<int64_t> max;
  uint64_t gauge = 0;  // the last value, kGauge
  uint64_t lost = 0;   // records overwritten unread, kLog
};

// A place where compiled code was left for baseline code or the host: a guard, or a block that was
// assumed never to run. Counts cover all versions of the method.
struct ExitReport {
  SiteId block = 0;    // the block's site
  uint32_t guard = 0;  // number of the guard in build order, from 1; 0: the start of the block, or
                       // (kValue) the guard at the start of a version for some values of the
                       // parameters
  GuardReason reason = GuardReason::kUnreached;
  uint32_t location = 0;        // of the guard
  uint64_t exits = 0;           // exits forced by stress switches do not count
  uint32_t retries = 0;         // times that the exit limit was reached
  bool banned = false;          // optimized code no longer guesses here
  SourcePositions source = {};  // of the location; empty if it is not known
};

// The state of one method. Counts are as of the last flush of each thread, for all versions of the
// method.
struct MethodReport {
  MethodId method;
  MethodKey key;
  std::string name;
  uint64_t hash = 0;        // of key and name; Options::opt_range selects by it
  Tier tier = Tier::kHost;  // of the code that calls run now
  uint64_t calls = 0;       // counted by the stub; with count_optimized=off, direct
                            // calls from optimized code to optimized code are missing
  uint64_t sampled_calls = 0;
  uint64_t loop_iterations = 0;  // counted by the checks at loop headers
  uint64_t bursts = 0;           // sampled runs of consecutive iterations
  uint64_t flushes = 0;
  uint64_t osr_entries = 0;  // entries into compiled code in the middle of a call, at a loop header
  // Frames that left their code. osr_outs: from older optimized code to newer code, at a loop
  // header. left: deoptimizations, to baseline code or to the host. Counted at once, not at
  // flushes.
  uint64_t osr_outs = 0;
  uint64_t left = 0;
  uint64_t left_for_host = 0;  // of these, frames that continued in MethodInfo::host_resume
  Observing observing = Observing::kOff;
  uint64_t interval = 0;  // mean gap between samples from now on; 0: none are taken
  // Upper bound of the distance between the profile and the truth (confidence 95 %), as a share of all
  // executions: 0..1. Empty while too little is known, or with fixed rates.
  std::optional<double> error_bound;
  // With counters=dual: sum |approximate - exact| / sum exact, over the counters of control flow.
  std::optional<double> dual_error;
  std::vector<SiteReport> sites;  // sites with observations, most executions first
  std::vector<ExitReport> exits;  // exits that were taken, in build order, guards first
  std::vector<VersionReport> versions;
  // True if calls ran optimized code that counts nothing: code of the method, or of another method
  // with this body inlined. Calls, and estimates of their executions, may then be too low.
  bool behind = false;
  std::string last_error;  // of a compilation that failed; the method stays in its present code

  // Returns true if a flush has seen the method run.
  bool called() const { return calls != 0 || loop_iterations != 0; }
};

// A counter of the host that measures loops (Options::loops) in place of the processor's cycles,
// such as instructions, cache misses, or ticks of a simulator.
//
//   begin   returns a stamp when a measured execution begins
//   end     returns the amount since the stamp, in `unit`s, when the execution ends
//
// Executions nest, each with its own stamp, and an outer execution includes the inner ones. So the
// counter must not run backwards. It includes the cost of begin and end themselves. They are called
// from instrumented copies only, on the thread that runs the loop. They must not call the runtime,
// block for long, or throw.
struct LoopMeter {
  std::string unit = "cycles";  // unit of the result of `end`
  uint64_t (*begin)(void* user) noexcept = nullptr;
  uint64_t (*end)(void* user, uint64_t stamp) noexcept = nullptr;
  void* user = nullptr;
};

// A loop that instrumented copies time (Options::loops), or, with loop_functions, the body of a
// function.
struct LoopReport {
  MethodId method;
  MethodKey key;
  std::string name;     // of the method
  LoopId loop;          // numbered in build order from 0 in each method; none for the body
  LoopId parent;        // the next outer loop in the method, timed or not, or none
  uint32_t depth = 0;   // 0: outermost
  uint32_t height = 0;  // 0: innermost
  std::optional<uint32_t> location;  // of its header: FunctionBuilder::set_location; empty if it is
                                     // 0
  SourcePositions source;            // of that location; empty if it is not known
  // Position of its code in the instrumented copy, in bytes from the copy's entry; both are 0 if
  // there has been none.
  uint32_t start_offset = 0;
  uint32_t end_offset = 0;
  // Estimates for all executions; `timed` of them were timed. Computed like
  // MethodProfile::loop_cycles; empty if there were executions but none was timed.
  double entries = 0;
  double iterations = 0;
  uint64_t timed = 0;
  std::string unit = "cycles";  // unit of all values that are called cycles here: LoopMeter::unit
  std::optional<Estimate> cycles;
  // Cycles without the cycles of the timed loops inside of it in the same method, at least 0.
  // Includes calls, with the loops of callees.
  std::optional<double> exclusive_cycles;
  // Share, 0..1, of the cycles during which threads were attached. With recursion, an execution
  // inside of another of the same loop counts in both; the shares of loops of callers and callees
  // overlap.
  double share = 0;
  // With loop_dual: the sum over all executions, each timed, including those that `cycles` is
  // extrapolated from. An execution whose end was not seen counts as much as the others.
  std::optional<double> exact_cycles;
};

// One execution of a loop, or of a function's body, as it was timed (Runtime::keep_loop_executions).
struct LoopExecution {
  MethodId method;
  LoopId loop;                // none for the body
  uint32_t start_offset = 0;  // as in LoopReport
  uint64_t cycles = 0;        // of this execution alone; in LoopReport::unit
  uint32_t thread = 0;        // number of the attachment, from 1
};

// One visit of a log probe (ProbeKind::kLog).
struct LogRecord {
  MethodId method;
  SiteId site = 0;      // as in the method's Schema
  uint32_t tag = 0;     // the argument of FunctionBuilder::probe
  uint64_t value = 0;   // see ProbeKind
  uint64_t cycles = 0;  // time stamp counter: the same clock for all threads, ascending for each
                        // thread
  uint32_t thread = 0;  // number of the attachment, from 1

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

// Everything that was lost or refused.
struct LossReport {
  uint64_t samples_without_copy = 0;  // due before the instrumented copy was ready
  uint64_t slabs_refused = 0;         // slab_budget used up
  uint64_t flushes_delayed = 0;       // ring full; the next snapshot carries the counts
  // Flushes for which memory was refused. The method's next snapshot, if one comes, includes their
  // counts.
  uint64_t flushes_lost = 0;
  uint64_t requests_dropped = 0;  // queue full
  uint64_t compiles_failed = 0;
  uint64_t code_refused = 0;   // code_budget used up
  uint64_t evictions = 0;      // methods whose code was freed to make room for others; compiled
                               // again when called
  uint64_t polls_refused = 0;  // versions whose loops cannot be left for newer code, because the
                               // words for it are used up
  // Old records that were dropped so that memory does not grow with time, the oldest first: removed
  // methods whose index is used again (Options::removed_kept), decisions (decisions_kept) and freed
  // versions.
  uint64_t methods_forgotten = 0;
  uint64_t decisions_forgotten = 0;
  uint64_t versions_forgotten = 0;
  // Calls of entries on threads that are not attached, about (such threads share a counter). They
  // are counted here only; their executions are not counted at all.
  uint64_t calls_unattached = 0;
  uint64_t keys_shared = 0;        // methods that share their key with a method of another name or
                                   // body
  uint64_t unstable_bodies = 0;    // methods that were described differently each time, so that the
                                   // runtime stopped compiling them
  uint64_t traps_lost = 0;         // dropped traps: see Runtime::raise
  uint64_t trace_events_lost = 0;  // the sink returned an error
  uint64_t log_records = 0;        // overwritten before read_log() took them
  uint64_t stack_samples = 0;      // dropped because the thread's ring was full
  uint64_t code_names_lost = 0;    // bodies of code whose name the perf_map or jit_dump file lacks
  // Executions of loops that were counted but not timed, although they should have been:
  uint64_t loops_full = 0;     // more were under way than a thread keeps track of
  uint64_t loops_stale = 0;    // their end was not seen (a trap, another copy)
  uint64_t loops_spoiled = 0;  // recursion made it unclear which execution iterations belong to
};

// Transitions that a stress switch could have forced (points), and those that it forced. A stress
// run that forced nothing tested nothing.
struct StressCount {
  std::string kind;  // as in Options::stress
  uint64_t points = 0;
  uint64_t forced = 0;
};

// Moves of code that close holes between bodies (Options::relay_code), and their cost.
struct RelayReport {
  uint64_t relays = 0;
  uint64_t bodies = 0;        // bodies that were moved
  uint64_t bytes = 0;         // bytes of these bodies
  uint64_t pages_before = 0;  // pages with code before the last move
  uint64_t pages_after = 0;   // pages with code after it, once all moved bodies have been freed
  uint64_t ns = 0;            // ns that moving took
  uint64_t looks = 0;         // checks for code to move
  uint64_t look_ns = 0;       // ns that these checks took

  friend bool operator==(const RelayReport&, const RelayReport&) = default;
};

// The use of a profile that an earlier process saved (Options::profile).
struct SavedReport {
  std::string file;        // empty without one
  std::string problem;     // why it was not read, or not completely; empty if all is well
  uint64_t runs = 0;       // runs that the profile sums up
  uint64_t methods = 0;    // methods whose profile was found and fits
  uint64_t recovered = 0;  // of these, found under another module, by name and code
  uint64_t matched = 0;    // of these, whose code has changed, matched by their call sites
  uint64_t stale = 0;      // methods whose profile belongs to other code: dropped
  uint64_t compiled = 0;   // optimized at their first call because of it
};

// The state of a runtime at one time. A value: it does not change when the runtime goes on.
struct Report {
  // Methods that have run, or were compiled or failed to be; most calls and loop iterations first.
  std::vector<MethodReport> methods;
  // In order. Only the last Options::decisions_kept, so the first has sequence 1 only if
  // losses.decisions_forgotten is 0.
  std::vector<DecisionRecord> decisions;
  LossReport losses;
  std::vector<StressCount> stress;  // the kinds that were requested
  SavedReport saved;
  ImageReport image;
  RelayReport relay;
  TimeReport time;  // by stack samples (Options::sample_hz)
  uint64_t methods_registered = 0;
  uint64_t code_bytes_in_service = 0;
  uint64_t code_bytes_freed = 0;
  uint64_t probe_bytes = 0;       // of the rows of blocks of versions that are not freed
  uint64_t compile_ns_total = 0;  // wall time of compilations that succeeded
  // Cost of the optimizing compiler per IR instruction, in ns of processor time: measured, or until
  // then Options::compile_ns.
  double compile_rate_ns = 0;
  // The measured cost of instrumentation, as a share of the threads' processor time. Empty without
  // a budget.
  std::optional<double> overhead_share;

  // Returns the number of `methods` that a flush has seen run.
  uint64_t methods_called() const;
  // Returns the report as a table for people, `methods_shown` methods at most (0: all).
  std::string text(size_t methods_shown = 30) const;
};

}  // namespace uptier
