// options.h: every option, in two tables: for embedders and for research.
//
//   X(kind, field, default, low, high, unit, reason)
//
// kind: count (uint64), real (double), flag (bool), or the name of an enum below. `uptier options`
// prints the tables. UPTIER_<FIELD> in capitals sets a field through Options::from_env; no option
// is read from the environment unless the embedder calls that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "uptier/result.h"

namespace uptier {

// The tiers that a runtime uses. kAuto: methods move between tiers. The others fix the tier of
// every method from its first call on; MethodInfo::host_entry then runs only methods that cannot be
// compiled.
enum class TierMode : uint8_t { kAuto, kBaseline, kInstrumented, kOptimized };
// The source of the policy's answers: the formula of `decide`, or a fixed answer for every method
// that it is asked about.
enum class PolicyMode : uint8_t { kAuto, kAlways, kNever };
// The control-flow counters of instrumented copies: one per block, or only on the edges outside of
// a spanning tree, from which all other edges and blocks follow exactly.
enum class FlowMode : uint8_t { kEdges, kBlocks };
// The sharing of counters. kPerThread: one per thread, summed at flushes. kInterlocked: one for all
// threads, exact. kRacing: one for all, increments may be lost. kScalable: one for all, exact up to
// 2^13 and probabilistic from there. kDual: kInterlocked and kScalable side by side, to measure the
// error.
enum class CounterMode : uint8_t { kPerThread, kInterlocked, kScalable, kRacing, kDual };
// The distribution of gaps around their mean. kExact: fixed gaps on one countdown that all threads
// share, exact to the call.
enum class GapMode : uint8_t { kRandom, kFixed, kPrime, kExact };
// The clock that stack samples follow: an event of the kernel (perf_event_open), or a timer of the
// thread's processor time, which fires at most once per tick of the kernel.
enum class SampleEngine : uint8_t { kTaskClock, kCpuTimer };
// The way in which methods to observe and optimize are found: by counts of calls and iterations; by
// stack samples, and then a method that no sample has met gets neither an instrumented copy nor
// optimized code; or whichever comes first. Methods of a saved profile need not be found.
enum class FindMode : uint8_t { kCounts, kSamples, kBoth };

// The importance of a line in the library's log. kWarning: something was lost or left out, and the
// runtime goes on. kError: a request was not carried out.
enum class LogLevel : uint8_t { kInfo, kWarning, kError };
// Receives one line of the library's log, without a newline and followed by a 0. `line` is valid
// during the call. Thread: any, several at once, perhaps with locks of the runtime held. For a trap
// without an `invoke`, it may be called in a signal handler, before the process ends.
// It must not call the runtime and must not throw.
using LogFunction = void (*)(void* user, LogLevel level, std::string_view line);

// clang-format off
// Options for embedders: tiers and sampling, memory and code, limits, saved profiles, perf and gdb.
#define UPTIER_EMBEDDER_OPTIONS(X)                                                                 \
  X(TierMode, tier, TierMode::kAuto, 0, 3, "mode",                                                 \
    "auto | baseline | instrumented | optimized; all but auto fix the tier of every method")       \
  X(PolicyMode, policy, PolicyMode::kAuto, 0, 2, "mode",                                           \
    "auto | always | never: whether methods are optimized")                                        \
  X(count, interval, 16, 1, 1u << 27, "calls",                                                     \
    "mean gap between sampled calls; 1 samples every call")                                        \
  X(flag, adaptive, true, 0, 1, "flag",                                                            \
    "sampling starts at every call and slows down to `interval` and beyond, as the profile gets accurate") \
  X(real, overhead_budget, 0.01, 0.0, 1.0, "share of CPU time",                                    \
    "limit for the cost of instrumentation, while adaptive; 0 means no limit")                     \
  X(flag, observe_optimized, true, 0, 1, "flag",                                                   \
    "while adaptive, optimized code has an instrumented copy, so that changes of phase are noticed") \
  X(flag, inlining, true, 0, 1, "flag",                                                            \
    "optimized code inlines small bodies that it calls often; these calls are counted as inlined") \
  X(flag, count_optimized, true, 0, 1, "flag",                                                     \
    "optimized code counts its entries and loop iterations, so that profiles of it stay true") \
  X(count, targets, 16, 0, 4096, "entries",                                                        \
    "callees counted per indirect call, and values per value probe; 0 does not observe indirect calls") \
  X(flag, loops, false, 0, 1, "flag",                                                              \
    "times loops in instrumented copies")                                                          \
  X(count, log_records, 4096, 1, 1u << 20, "records per thread",                                   \
    "records of log probes that are kept; the oldest are dropped (counted)")                       \
  X(count, flush_first, 32, 1, 1u << 30, "calls",                                                  \
    "calls of a method before its first flush")                                                    \
  X(count, loop_flush_first, 4096, 1, 1u << 30, "iterations",                                      \
    "iterations before a method's first flush, for programs that spend their life in one call")    \
  X(count, workers, 1, 0, 1, "threads",                                                            \
    "background compile threads; with 0, the calling thread compiles when it flushes")             \
  X(flag, measure_rates, true, 0, 1, "flag",                                                       \
    "measure compile_ns, baseline_ns and speedup; if this and adaptive are off, no decision uses a clock") \
  X(flag, value_versions, true, 0, 1, "flag",                                                      \
    "a method whose parameter is nearly always one value gets a version for it, with a guard at its start") \
  X(count, max_recompiles, 8, 0, 1000, "versions",                                                 \
    "optimized versions that a method may have in its life, not counting OSR versions")            \
  X(flag, deopt_cold, false, 0, 1, "flag",                                                         \
    "optimized code omits blocks that no sample has run; if reached, it deoptimizes to baseline code") \
  X(count, exit_limit, 100, 1, 1u << 24, "exits",                                                  \
    "exits at a guard after which its method is compiled again with the current profile; then it doubles")        \
  X(count, exit_limit_loop, 5, 1, 1u << 24, "exits",                                               \
    "exit_limit for a site in a loop")                                                             \
  X(count, exit_retries, 3, 0, 16, "times",                                                        \
    "times that a guard may reach its limit; then it is not made again (a host's guard: no optimized code)") \
  X(count, max_methods, 1u << 16, 1, 1u << 20, "methods",                                          \
    "methods at a time; each thread reserves 8 MiB of address space for every 65,536 of them") \
  X(count, removed_kept, 1024, 0, 1u << 20, "methods",                                             \
    "number of removed methods the report and profile still list (fewer if max_methods runs out)") \
  X(count, decisions_kept, 1u << 15, 1, 1u << 24, "decisions",                                     \
    "number of decisions the report still lists; the oldest are dropped (counted)")                \
  X(count, code_budget, 64u << 20, 1u << 16, 1u << 30, "bytes",                                    \
    "machine code in service and stubs of all methods; when used up, cold methods lose their code") \
  X(count, slab_budget, 64u << 20, 1u << 12, 1u << 30, "bytes per thread",                         \
    "counters; when used up, further methods are not instrumented (counted)")                      \
  X(count, ring_bytes, 1u << 20, 1u << 12, 1u << 28, "bytes per thread",                           \
    "flushed snapshots that wait for the worker; a full ring delays a flush (counted)")            \
  X(count, stack_reserve, 256u << 10, 32u << 10, 1u << 28, "bytes",                                \
    "stack for host functions below the limit at which calls trap stack_exhausted")                \
  X(count, max_stack, 64u << 20, 64u << 10, 1u << 30, "bytes",                                     \
    "most stack of guest code and host functions, from where the thread attached; a smaller stack has less") \
  X(count, max_queue, 1024, 1, 1u << 20, "requests",                                               \
    "compile requests that wait; if full, the least urgent is dropped (and requested again later)") \
  X(count, fuel, 0, 0, 1ull << 62, "calls and iterations",                                         \
    "limit per invoke, after which it traps out_of_fuel. 0: no limit, and code does not count")    \
  X(count, interrupt_signal, 0, 0, 64, "signal",                                                   \
    "real-time signal by which interrupt() reaches a thread; 0: SIGRTMIN + 4")                     \
  X(count, sample_hz, 0, 0, 20000, "samples per second of CPU time",                               \
    "rate at which stacks are sampled, for shares of time in the report; 0: no samples")           \
  X(FindMode, find, FindMode::kCounts, 0, 2, "mode",                                               \
    "counts | samples | both: what finds the methods that are observed and optimized; samples need sample_hz") \
  X(count, sample_signal, 0, 0, 64, "signal",                                                      \
    "real-time signal of stack samples; 0: SIGRTMIN + 5")                                          \
  X(count, max_body, 50000, 1, 1u << 30, "IR instructions",                                        \
    "a larger body is not optimized: it stays in its present code")                                \
  X(count, max_compile_ms, 1000, 1, 1u << 30, "ms",                                                \
    "processor time for one optimizing compilation; then it is abandoned, and the method is not changed") \
  X(flag, blind_constants, false, 0, 1, "flag",                                                    \
    "hide constants outside -65536 .. 65535 by random keys, so that a guest cannot choose bytes of the code") \
  X(flag, landing_pads, false, 0, 1, "flag",                                                       \
    "emit ENDBR64 where indirect calls and jumps land, for processors that enforce it (CET)")      \
  X(count, profile_lock_ms, 5000, 0, 1u << 30, "ms",                                               \
    "how long to wait for another process that has locked the profile; then it is not saved (logged)") \
  X(real, profile_decay, 0.5, 0.0, 1.0, "factor",                                                  \
    "weight of the saved profile when another run is added; 1 forgets nothing")                    \
  X(flag, profile_sync, true, 0, 1, "flag",                                                        \
    "wait until a saved profile is on disk; if off, it is lost if the power fails soon after")     \
  X(flag, perf_map, false, 0, 1, "flag",                                                           \
    "write names of code to /tmp/perf-PID.map for perf (mode 0600; replaces an old file of this PID)") \
  X(flag, jit_dump, false, 0, 1, "flag",                                                           \
    "write code to /tmp/jit-PID.dump for `perf inject --jit` (mode 0600; replaces an old file)")   \
  X(flag, probe_table, true, 0, 1, "flag",                                                         \
    "keep the rows that say which block of which body an address of code belongs to; code is the same") \
  X(flag, keep_code, false, 0, 1, "flag",                                                          \
    "keep copies of freed code, and whole stack samples (sample_hz), for code_images(); needs probe_table") \
  X(flag, gdb, false, 0, 1, "flag",                                                                \
    "tell gdb and lldb the names and lines of code; a debugger stops for a moment at each compilation") \
  X(flag, line_rows, false, 0, 1, "flag",                                                          \
    "keep the locations of all instructions beside code, for Runtime::site_at; gdb and jit_dump do so too")

// Options for research: for experiments, for measuring the library and for finding its faults.
#define UPTIER_RESEARCH_OPTIONS(X)                                                                 \
  X(GapMode, gap, GapMode::kRandom, 0, 3, "mode",                                                  \
    "random | fixed | prime | exact; fixed gaps alias with periodic programs")                     \
  X(count, burst, 32, 1, 1u << 20, "iterations",                                                   \
    "loop iterations counted once a loop header has switched to the instrumented copy")            \
  X(real, epsilon, 0.02, 1e-4, 1.0, "distance",                                                    \
    "error bound (share of executions, confidence 95 %) from which on a method is sampled ever more rarely") \
  X(count, copy_after, 512, 1, 1u << 30, "calls",                                                  \
    "calls of optimized code after which its instrumented copy is made")                           \
  X(count, optimized_interval, 16384, 1, 1u << 27, "calls",                                        \
    "greatest mean gap between calls that run the copy of optimized code (a power of two, at most this)") \
  X(FlowMode, flow, FlowMode::kEdges, 0, 1, "mode",                                                \
    "edges | blocks; edges need fewer counters and tell more, blocks are simpler")                 \
  X(CounterMode, counters, CounterMode::kPerThread, 0, 4, "mode",                                  \
    "per_thread | interlocked | scalable | racing | dual; all but per_thread observe control flow only") \
  X(flag, narrow_counters, false, 0, 1, "flag",                                                    \
    "32-bit counters in half the space; they stop at their greatest value")                        \
  X(flag, recent, false, 0, 1, "flag",                                                             \
    "tables of callees and values halve their counts at each flush, so that recent ones weigh more") \
  X(count, loop_depth, 1000, 0, 1000, "loops",                                                     \
    "loops nested deeper than this are not timed; 0: outermost loops only")                        \
  X(count, loop_height, 0, 0, 1000, "loops",                                                       \
    "loops with fewer levels of loops inside are not timed; 0: innermost loops too")               \
  X(flag, loop_siblings, false, 0, 1, "flag",                                                      \
    "time only loops that have sibling loops")                                                     \
  X(flag, loop_functions, false, 0, 1, "flag",                                                     \
    "time bodies of functions like loops")                                                         \
  X(flag, loop_dual, false, 0, 1, "flag",                                                          \
    "time every execution, and report the error that extrapolation would have made")               \
  X(count, loop_records, 2048, 2, 1u << 30, "executions",                                          \
    "timed executions of a loop, recorded between two flushes; up to 8 times as many if they vary much") \
  X(real, flush_growth, 2.0, 1.0, 1024.0, "factor",                                                \
    "each flush comes at this multiple of the one before; 1 means every flush_first calls")        \
  X(count, seed, 1, 0, UINT64_MAX, "seed",                                                         \
    "seed of the random gaps; one stream per thread is derived from it")                           \
  X(count, min_samples, 2, 1, 1u << 30, "samples",                                                 \
    "a profile with fewer samples (sampled calls and bursts) is not trusted")                      \
  X(real, speedup, 3.0, 1.0, 100.0, "factor",                                                      \
    "assumed speed of optimized code over baseline code, until it is measured")                    \
  X(real, compile_ns, 2500.0, 0.0, 1e9, "ns per IR instruction",                                   \
    "assumed cost of the optimizing compiler, until it is measured")                               \
  X(flag, trials, true, 0, 1, "flag",                                                              \
    "time a new version against the one that it replaces; needs measure_rates")                    \
  X(real, baseline_ns, 1.0, 0.0, 1e6, "ns per IR instruction",                                     \
    "assumed cost of running baseline code, until it is measured; if set, it is not measured")     \
  X(real, value_share, 0.95, 0.5, 1.0, "share",                                                    \
    "share of a parameter's samples with one value, from which on a version for that value is made") \
  X(count, value_samples, 64, 1, 1u << 30, "samples",                                              \
    "samples of a parameter needed before a version for its value is made")                        \
  X(real, miss_share, 0.2, 0.0, 1.0, "share",                                                      \
    "share of such a version's calls that may have other values; above, it is taken back")         \
  X(count, drift_samples, 256, 1, 1u << 30, "samples",                                             \
    "samples of an optimized version before drift makes a new one; doubles each time")             \
  X(count, cold_samples, 64, 1, 1u << 30, "samples",                                               \
    "samples needed before a block counts as one that never runs")                                 \
  X(flag, osr_out, true, 0, 1, "flag",                                                             \
    "loops of optimized code that contain calls or loops test a word for newer code")              \
  X(flag, pack_code, true, 0, 1, "flag",                                                           \
    "bodies share pages of code, their cold parts are apart; if off, each has pages of its own")   \
  X(flag, relay_code, true, 0, 1, "flag",                                                          \
    "compact the code cache when it is fragmented, so that pages become free; needs pack_code")    \
  X(SampleEngine, sample_engine, SampleEngine::kTaskClock, 0, 1, "mode",                           \
    "task_clock | cpu_timer; where the kernel refuses task_clock, it is cpu_timer (logged)")       \
  X(count, sample_ring_bytes, 1u << 19, 1u << 12, 1u << 28, "bytes per thread",                    \
    "stack samples that wait for the worker; a full ring drops samples (counted)")                 \
  X(real, relay_holes, 0.5, 0.05, 0.95, "share",                                                   \
    "share of holes in pages with code above which the code around them is moved")                 \
  X(count, relay_gap_ms, 1000, 0, 1u << 30, "ms",                                                  \
    "shortest time between two checks for code to move")

#define UPTIER_OPTIONS(X) UPTIER_EMBEDDER_OPTIONS(X) UPTIER_RESEARCH_OPTIONS(X)
// clang-format on

struct Options {
  using count = uint64_t;
  using real = double;
  using flag = bool;
#define UPTIER_ROW(kind, field, fallback, low, high, unit, reason) kind field = fallback;
  UPTIER_OPTIONS(UPTIER_ROW)
#undef UPTIER_ROW
  // Stress switches, e.g. "osr=all" or "copy=every:3,osr=random:0.1:7"; see docs/options.md. Kinds:
  // osr, copy, guard, code, compile, delay, flip, slow, values, osr_out, relay. Forms: all, at:N,
  // from:N, every:N, random:P:SEED; for osr, copy, guard and osr_out also once, which forces each
  // place the first time.
  std::string stress;
  // Optimizes only methods whose hash (see Report) lies in this range, e.g. "0..7fffffffffffffff";
  // empty: all. Use it to find a method whose code is wrong.
  std::string opt_range;
  // Times only these loops, e.g. "12:0,12:3" (function index and loop), if `loops` is on; other
  // loops are counted. Empty: all. Use it to time a loop without the cost of timing the short loops
  // inside of it.
  std::string time_loops;
  // A profile file (.upf). It is read at the start, so that methods that were hot are optimized at
  // their first call. It is written at the end (Runtime::save_profile), merged with the content
  // that it has by then. In its name %p stands for the process's id, %h for the host's name, %t for
  // the time, %c for the least number that is free, %% for %. Empty: none.
  std::string profile;
  // An image (image.h): first calls take code from it instead of compiling. Whoever can write the file
  // decides what the process runs. Empty: none. A file that must not be used is named in the log.
  std::string image;
  // A Unix socket on which the process tells its user, and nobody else, where its time goes
  // (uptier/live_time.h, `uptier top`). "on": a socket named by the process's id, in a directory of
  // the user's own below $XDG_RUNTIME_DIR or /tmp, which is made. Otherwise the path of the socket,
  // with a "/"; its directory must be the user's own with mode 0700. It is read-only: what comes
  // through it changes nothing. Empty: no socket. If it cannot be opened, the runtime goes on
  // without it (logged).
  std::string listen;
  // Receives the library's log: misuse, and problems that no return value reports, such as files
  // that could not be saved or mapped, or threads that could not be started. Null: each line goes
  // to stderr. Not part of `changes` or `table`.
  LogFunction log = nullptr;
  void* log_user = nullptr;

  // Reads UPTIER_<FIELD> for every row (and UPTIER_STRESS, UPTIER_OPT_RANGE, UPTIER_TIME_LOOPS,
  // UPTIER_PROFILE, UPTIER_IMAGE, UPTIER_LISTEN) through secure_getenv. Other variables are ignored. Errors: as
  // for `set`.
  static Result<Options> from_env();
  // Sets one field from text; bytes also as 64K, 64M or 1G (of 1,024). Errors: kNotFound, or
  // kInvalidArgument with the legal range.
  Status set(std::string_view name, std::string_view value);
  // Sets one field from "NAME=VALUE", the form of a command line. Errors: as for `set`, and
  // kInvalidArgument without a `=`.
  Status set(std::string_view assignment);
  // Checks every range. `Runtime::create` calls it.
  Status check() const;
  // Returns all options that differ from their defaults, as "name=value" separated by spaces;
  // values with spaces are not quoted.
  std::string changes() const;
  // Returns both tables as text for people: name, value, unit, range, reason; two lines per row,
  // one for options that are texts. Headings begin with "--".
  std::string table() const;
};

}  // namespace uptier
