// options.h: every knob, in one table.
//
//   X(kind, field, default, low, high, unit, reason)
//
// kind: count (uint64), real (double), flag (bool), or the name of an enum below. `uptier options`
// prints the table; UPTIER_<FIELD> in capitals sets a field through Options::from_env, and nothing
// reads the environment unless the embedder asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "uptier/result.h"

namespace uptier {

// Which tiers a runtime uses. kAuto is the whole loop; the others hold every method in one place,
// from its first call on: MethodInfo::host_entry then runs only what cannot be compiled.
enum class TierMode : uint8_t { kAuto, kBaseline, kInstrumented, kOptimized };
// What answers `decide`: the formula, or a fixed answer for every method it is asked about.
enum class PolicyMode : uint8_t { kAuto, kAlways, kNever };
// Which counters instrumented copies carry for control flow: one a block, or those on edges outside
// a spanning tree, from which all others follow exactly.
enum class FlowMode : uint8_t { kEdges, kBlocks };
// How counters are shared. kPerThread: one each, summed at flushes. kInterlocked: one for all
// threads, exact. kRacing: one for all, increments may be lost. kScalable: one for all, exact up to
// 2^13 and probabilistic from there. kDual: kInterlocked and kScalable side by side, to measure the
// error.
enum class CounterMode : uint8_t { kPerThread, kInterlocked, kScalable, kRacing, kDual };
// How gaps are drawn around the mean. kExact: fixed gaps on one shared countdown, to the call.
enum class GapMode : uint8_t { kRandom, kFixed, kPrime, kExact };

// How important a line of the library's log is. kWarning: something was lost or left out, and the
// runtime goes on. kError: what was asked for did not happen.
enum class LogLevel : uint8_t { kInfo, kWarning, kError };
// Receives one line of the library's log, without a newline; a 0 comes behind it. `line` is valid
// during the call. Thread: any, several at once, perhaps with locks of the runtime held, and for a
// trap that no `invoke` is there for in the handler of its signal, before the process ends. It must
// not call the runtime. It must not throw.
using LogFunction = void (*)(void* user, LogLevel level, std::string_view line);

// clang-format off
#define UPTIER_OPTIONS(X)                                                                          \
  X(TierMode,   tier,              TierMode::kAuto,      0, 3, "mode",                             \
    "auto | baseline | instrumented | optimized")                                                  \
  X(PolicyMode, policy,            PolicyMode::kAuto,    0, 2, "mode",                             \
    "auto | always | never")                                                                       \
  X(GapMode,    gap,               GapMode::kRandom,     0, 3, "mode",                             \
    "random | fixed | prime | exact; fixed gaps alias with periodic programs")                     \
  X(count,      interval,          16,        1, 1u << 27, "calls",                                \
    "mean gap between sampled calls; 1 samples every call")                                        \
  X(count,      burst,             32,        1, 1u << 20, "iterations",                           \
    "loop iterations counted once a loop header has switched to the instrumented copy")            \
  X(flag,       adaptive,          true,      0, 1, "flag",                                        \
    "rates start at every call, widen to `interval` and beyond, most where all is known")          \
  X(real,       overhead_budget,   0.01,      0.0, 1.0, "share of CPU time",                       \
    "what instrumentation may cost, while adaptive; 0 means that nothing limits it")               \
  X(real,       epsilon,           0.02,      1e-4, 1.0, "distance",                               \
    "a profile this near the truth (odds 95 %) is known: its method is sampled ever more thinly") \
  X(flag,       observe_optimized, true,      0, 1, "flag",                                        \
    "while adaptive, optimized code gets an instrumented copy, so that changes of phase are seen") \
  X(count,      optimized_interval, 16384,    1, 1u << 27, "calls",                                \
    "mean gap between calls that run it (a power of two, rounded down)")                           \
  X(flag,       inlining,          true,      0, 1, "flag",                                        \
    "optimized code takes in small bodies that it calls often; their calls are not counted then")  \
  X(FlowMode,   flow,              FlowMode::kEdges, 0, 1, "mode",                                 \
    "edges | blocks; edges count less and tell more, blocks are simpler")                          \
  X(CounterMode, counters,         CounterMode::kPerThread, 0, 4, "mode",                          \
    "per_thread | interlocked | scalable | racing | dual; shared ones observe control flow only")  \
  X(flag,       narrow_counters,   false,     0, 1, "flag",                                        \
    "counters of 32 bits in half the space; they stop at their greatest value")                    \
  X(count,      targets,           16,        0, 4096, "entries",                                  \
    "callees counted at each indirect call, and values at each value probe; 0 leaves calls out")   \
  X(flag,       recent,            false,     0, 1, "flag",                                        \
    "tables of callees and values halve what they hold at each flush: what is recent weighs more") \
  X(flag,       loops,             false,     0, 1, "flag",                                        \
    "times loops in instrumented copies")                                                          \
  X(count,      loop_depth,        1000,      0, 1000, "loops",                                    \
    "loops nested deeper than this are not timed; 0: outermost ones only")                         \
  X(count,      loop_height,       0,         0, 1000, "loops",                                    \
    "loops with fewer levels inside are not timed; 0: innermost ones too")                         \
  X(flag,       loop_siblings,     false,     0, 1, "flag",                                        \
    "only loops that have siblings are timed")                                                     \
  X(flag,       loop_functions,    false,     0, 1, "flag",                                        \
    "bodies of functions are timed like loops")                                                    \
  X(flag,       loop_dual,         false,     0, 1, "flag",                                        \
    "every execution is timed, and beside it stands what would be extrapolated: the error, in place") \
  X(count,      loop_records,      2048,      2, 1u << 30, "executions",                           \
    "of a loop, timed and kept between two flushes; up to 8 times as many where they differ much")               \
  X(count,      log_records,       4096,      1, 1u << 20, "records per thread",                   \
    "records of log probes that are kept; the oldest go first (counted)")                          \
  X(count,      flush_first,       32,        1, 1u << 30, "calls",                                \
    "first flush of a method")                                                                     \
  X(real,       flush_growth,      2.0,       1.0, 1024.0, "factor",                               \
    "each flush comes at this multiple of the one before; 1 means every flush_first calls")        \
  X(count,      loop_flush_first,  4096,      1, 1u << 30, "iterations",                           \
    "first flush of a method by loop iterations, for programs that live in one call")              \
  X(count,      seed,              1,         0, UINT64_MAX, "seed",                               \
    "of the random gaps; one stream per thread is derived from it")                                \
  X(count,      workers,           1,         0, 1, "threads",                                     \
    "background compile threads; 0 does the work at the flush, on the calling thread")             \
  X(count,      min_samples,       2,         1, 1u << 30, "samples",                              \
    "samples (sampled calls and bursts) below which a profile is not trusted")                     \
  X(real,       speedup,           3.0,       1.0, 100.0, "factor",                                \
    "assumed speed of optimized code over baseline code, until it is measured")                                          \
  X(real,       compile_ns,        2500.0,    0.0, 1e9, "ns per IR instruction",                   \
    "assumed cost of the optimizing compiler, until it is measured")                               \
  X(flag,       measure_rates,     true,      0, 1, "flag",                                        \
    "compile_ns and speedup give way to what is measured; off, with adaptive=off: no clock decides")               \
  X(flag,       trials,            true,      0, 1, "flag",                                        \
    "a version that takes the place of another is timed against it; needs measure_rates")          \
  X(real,       baseline_ns,       1.0,       0.0, 1e6, "ns per IR instruction",                   \
    "assumed cost of running baseline code")                                                       \
  X(flag,       value_versions,    true,      0, 1, "flag",                                         \
    "a method whose parameter is nearly always one value gets a version for it, behind a guard")   \
  X(real,       value_share,       0.95,      0.5, 1.0, "share",                                   \
    "of the samples of a parameter that must agree before its method is specialized")              \
  X(count,      value_samples,     64,        1, 1u << 30, "samples",                              \
    "of a parameter below which its method is not specialized")                                    \
  X(real,       miss_share,        0.2,       0.0, 1.0, "share",                                   \
    "of the calls of a specialized version that may have another value; above, it is taken back")  \
  X(count,      max_recompiles,    8,         0, 1000, "versions",                                 \
    "optimized versions a method may have in its life, OSR versions apart")                        \
  X(count,      drift_samples,     256,       1, 1u << 30, "samples",                              \
    "samples of an optimized version before it is made anew for drift; doubles each time")         \
  X(flag,       deopt_cold,        false,     0, 1, "flag",                                        \
    "blocks that no sample ran are left out of optimized code, which goes back to baseline there") \
  X(count,      cold_samples,      64,        1, 1u << 30, "samples",                              \
    "samples below which no block is taken to be one that never runs")                             \
  X(flag,       osr_out,           true,      0, 1, "flag",                                        \
    "loops of optimized code that hold calls or loops ask a word whether there is better code")    \
  X(count,      exit_limit,        100,       1, 1u << 24, "exits",                                \
    "exits at one site after which the method is optimized anew, at once; doubles each time")      \
  X(count,      exit_limit_loop,   5,         1, 1u << 24, "exits",                                \
    "the same of a site in a loop")                                                                \
  X(count,      exit_retries,      3,         0, 16, "times",                                      \
    "times that the limit of a site is met before it is banned, which ends optimizing at a guard") \
  X(count,      max_methods,       1u << 16,  1, 1u << 20, "methods",                              \
    "methods at a time; reserves 128 bytes of address space per thread and method")                \
  X(count,      removed_kept,      1024,      0, 1u << 20, "methods",                              \
    "removed ones that the report and the profile still know; max_methods may leave fewer")        \
  X(count,      decisions_kept,    1u << 15,  1, 1u << 24, "decisions",                            \
    "that the report still knows; the oldest go first (counted)")                                  \
  X(count,      code_budget,       64u << 20, 1u << 16, 1u << 30, "bytes",                         \
    "machine code in service and stubs of all methods; when it is spent, cold ones give theirs up") \
  X(flag,       pack_code,         true,      0, 1, "flag",                                        \
    "bodies share pages of the code space, their cold parts lie apart; off: pages of their own")   \
  X(flag,       relay_code,        true,      0, 1, "flag",                                        \
    "code is moved side by side, callers by callees, when it lies too far apart; needs pack_code") \
  X(real,       relay_holes,       0.5,       0.05, 0.95, "share",                                 \
    "of the room in pages with code that may be holes; above, what lies between them is moved")    \
  X(count,      relay_gap_ms,      1000,      0, 1u << 30, "ms",                                   \
    "between two looks whether code is to be moved, at least")                                     \
  X(count,      slab_budget,       64u << 20, 1u << 12, 1u << 30, "bytes per thread",              \
    "counters; when spent, further methods are not instrumented (counted)")                        \
  X(count,      ring_bytes,        1u << 20,  1u << 12, 1u << 28, "bytes per thread",              \
    "flushed snapshots that wait for the worker; a full ring delays a flush (counted)")            \
  X(count,      stack_reserve,     256u << 10, 32u << 10, 1u << 28, "bytes",                       \
    "stack kept free for host functions below the point where calls trap stack_exhausted")         \
  X(count,      max_stack,         64u << 20, 64u << 10, 1u << 30, "bytes",                        \
    "stack that compiled code may use at most, if the thread has that much")                       \
  X(count,      max_queue,         1024,      1, 1u << 20, "requests",                             \
    "compile requests that wait; a full queue drops the least urgent (asked again later)")         \
  X(count,      fuel,              0,         0, 1ull << 62, "calls and iterations",               \
    "each invoke may run; then it traps out_of_fuel. 0: no limit, and code does not count")        \
  X(count,      interrupt_signal,  0,         0, 64, "signal",                                     \
    "real-time signal by which interrupt() reaches a thread; 0: SIGRTMIN + 4")                     \
  X(count,      max_body,          50000,     1, 1u << 30, "IR instructions",                      \
    "a larger body is not optimized: it stays in the code it has")                                  \
  X(count,      max_compile_ms,    1000,      1, 1u << 30, "ms",                                   \
    "processor time of one optimizing compilation; then it is given up, and the method stays as it is") \
  X(flag,       blind_constants,   false,     0, 1, "flag",                                        \
    "large constants are encrypted in code, so that a guest cannot choose the bytes of it")        \
  X(flag,       landing_pads,      false,     0, 1, "flag",                                        \
    "ENDBR64 where indirect calls and jumps land, for processors that enforce it (CET)")           \
  X(count,      profile_lock_ms,   5000,      0, 1u << 30, "ms",                                   \
    "to wait for another process that has the profile locked; then it is not saved, which is said") \
  X(real,       profile_decay,     0.5,       0.0, 1.0, "factor",                                  \
    "what a saved profile still counts for when another run is added; 1 forgets nothing")          \
  X(flag,       profile_sync,      true,      0, 1, "flag",                                        \
    "waits until the disk has a saved profile; off: lost if the power fails soon after")           \
  X(flag,       perf_map,          false,     0, 1, "flag",                                        \
    "names code in /tmp/perf-PID.map for perf (mode 0600; replaces an old file of the process id)")           \
  X(flag,       jit_dump,          false,     0, 1, "flag",                                        \
    "writes code to /tmp/jit-PID.dump for `perf inject --jit` (mode 0600; replaces an old file)")   \
  X(flag,       gdb,               false,     0, 1, "flag",                                        \
    "tells gdb and lldb what code is called; a debugger stops for a moment at each compilation")
// clang-format on

struct Options {
  using count = uint64_t;
  using real = double;
  using flag = bool;
#define UPTIER_ROW(kind, field, fallback, low, high, unit, reason) kind field = fallback;
  UPTIER_OPTIONS(UPTIER_ROW)
#undef UPTIER_ROW
  // Stress switches, e.g. "osr=all" or "copy=every:3,osr=random:0.1:7"; see the README,
  // "Options and stress". Kinds: osr, copy, guard, code, compile, delay, flip, slow, values, osr_out,
  // relay.
  // Forms: all, at:N, from:N, every:N, random:P:SEED; of osr, copy, guard and osr_out also once,
  // which forces each place the first time.
  std::string stress;
  // Only methods whose hash (see Report) lies in this range are optimized, e.g.
  // "0..7fffffffffffffff"; empty: all. For finding the one whose code is wrong.
  std::string opt_range;
  // Of the loops that `loops` observes, only these are timed, e.g. "12:0,12:3" (function index and
  // loop); the others are counted. Empty: all. For the truth about one that holds short ones.
  std::string time_loops;
  // A profile file (.upf): read at the start, so that what was hot is optimized at its first call;
  // written at the end (Runtime::save_profile), merged with what is there by then. In its name
  // %p stands for the process's id, %h for the host's name, %t for the time, %c for the least
  // number that is free, %% for %. Empty: none.
  std::string profile;
  // Receives what the library has to say when nobody asked: what could not be saved, mapped or
  // started, and misuse. Null: each line goes to stderr. Not part of `changes` or `table`.
  LogFunction log = nullptr;
  void* log_user = nullptr;

  // Reads UPTIER_<FIELD> for every row (and UPTIER_STRESS, UPTIER_OPT_RANGE,
  // UPTIER_TIME_LOOPS, UPTIER_PROFILE) through secure_getenv.
  static Result<Options> from_env();
  // Sets one field from text; bytes also as 64K, 64M or 1G (of 1,024). Errors: kNotFound, or
  // kInvalidArgument with the legal range.
  Status set(std::string_view name, std::string_view value);
  // Sets one field from "NAME=VALUE", as a command line brings it. Errors: those of `set`, and
  // kInvalidArgument without a sign.
  Status set(std::string_view assignment);
  // Checks every range. `Runtime::create` calls it.
  Status check() const;
  // Returns all that differ from the defaults, "name=value" with spaces between; values with spaces
  // in them as they are.
  std::string changes() const;
  // Returns the table for people: name, value, unit, range, reason; two lines a row.
  std::string table() const;
};

}  // namespace uptier
