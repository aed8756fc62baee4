// policy.h: decides what happens to a method, as a pure function of the observations of it. A host
// can replace the policy, and logged decisions can be made again.
//
// With
//   work   instructions of the IR executed so far, estimated:
//            sampled    sum over blocks of count * instructions, divided by the sampled share
//            unsampled  calls * instructions + iterations * instructions per loop
//            saved      work in one run of a saved profile: an estimate of the work still to come, as
//                       long as this process has done less
//   past   the greater of executed and saved work * baseline_ns; the future is assumed to be as long
//          as the past (Arnold et al., OOPSLA 2000)
//   baseline_ns  ns per instruction in baseline code, measured at the start on a body of the
//          library's own, and on methods by trials; the option's value if measuring is off or if
//          the option was set
//   speedup  of optimized code over baseline code, measured by trials of both; before that, assumed
//   rate   ns per instruction in the optimizing compiler, measured in this process from the start
//          on; compile_ns if measuring is off
//   cost   instructions * rate * (1 + queue / 64), so that a long queue raises the bar; `queue` is
//          the length with hysteresis: it falls only when the length is below half of it
//
// a method is worth a better version when
//
//   cost + past / speedup < past                                            (1)
//
// and the answer is
//
//   keep        if (1) does not hold, a version is being made, or the method has its best version
//   keep        if it has fewer than min_samples samples, saved ones included, unless waiting cannot
//               help (no copy can be made, or all threads that call it end soon)
//   specialize  (optimize with the profile) if (1) holds and the profile has min_samples samples
//   recompile   (optimize without it) if (1) holds, and there will be no profile; or if the method is still in
//               Tier::kHost, whose cost is unknown, and has been called, or its loop has iterated,
//               as often as its first flush needs
//
// Optimized code may turn out to have been made from another profile than it runs with. With
//   drift  a lower bound of the distance of the two profiles: the share of executions for which the
//          layout of the code is wrong; they are assumed to be no faster than baseline code
//   since  time that the version has run so far: past * (its share of the calls) / speedup; the
//          future is again assumed to be as long
//   limit  drift_samples * 2^(versions made for drift so far), in samples of the version
// the method is worth another version, from the counts of the recent windows, when
//
//   cost < since * drift * (1 - 1 / speedup)   and   samples >= limit                       (2)
//
// So a program that keeps changing is followed ever more slowly, and max_recompiles ends it. The
// answer is
//   keep        if the drift is below epsilon, or (2) does not hold
//   specialize  if (2) holds
//
// Optimized code is taken back if a trial finds it slower than baseline code. With another profile
// the reason may be gone, so the method may be optimized again after 16 times as many calls as it
// had then; until then the answer is keep.
//
// A frame that runs a loop is better served by OSR when one call is worth a compilation by itself:
// (1) for past / calls. Calls may differ: an interpreter's loop may be called back a million times
// while its first call runs on. So a frame that stays in baseline code although there is optimized
// code is served as well, when the work there since then is worth a compilation: (1) for
//   behind  work of frames in baseline code since the method was optimized, or since the last OSR
//           version was requested for them * baseline_ns
//
// If there is an OSR version for another loop, or will be, a frame probably enters that one, and
// stays in it for all loops. Then only `behind` counts.
//
// Exits, trials of two versions, and versions for values are decided by similar rules, which
// replay() knows as well.
#pragma once

#include <cstdint>
#include <string>

#include "uptier/ids.h"
#include "uptier/options.h"
#include "uptier/report.h"
#include "uptier/result.h"

namespace uptier {

// kKeep: no new version. kRecompile: optimize without the profile. kSpecialize: optimize with it. The
// others occur in logs only (DecisionRecord::action); a Policy must not return them.
enum class Action : uint8_t { kKeep, kRecompile, kSpecialize, kRollBack, kReInstrument, kBan };
const char* action_name(Action a);  // "keep", ...; static storage

// The inputs of a decision about one method.
struct MethodSnapshot {
  Tier tier = Tier::kBaseline;
  bool optimized_requested = false;  // a normal version is queued or being compiled
  bool osr_requested = false;        // likewise for code that is entered at `at_loop`
  bool osr_ready = false;            // code that can be entered at `at_loop` exists
  bool osr_elsewhere = false;  // code that can be entered at another loop exists, or is queued
                               // or being compiled
  bool can_instrument = true;  // it helps to wait for samples: a copy can be made, and
                               // threads go on calling
  bool failed = false;         // an optimizing compilation failed before
  bool excluded = false;       // its hash lies outside Options::opt_range
  bool guard_banned = false;   // a guard of the host has failed too often (exit_retries), so
                               // the method is not optimized any more
  uint32_t instructions = 0;   // of the IR
  uint32_t loops = 0;
  uint32_t optimized_versions = 0;  // made so far
  // About the optimized version in service, as observed by its own instrumented copy:
  double drift = 0;             // see (2); 0: unknown
  uint64_t drift_samples = 0;   // samples of the version
  uint64_t version_calls = 0;   // calls since it came into service
  uint32_t drift_versions = 0;  // versions made for drift so far
  // About baseline code: the distance between the latest window, which caused this question, and
  // the earlier windows, as a share of executions, 0..1. It is 0 in all questions but the first
  // since a drift. decide() does not use it: code is made from the observations since the drift.
  double phase_drift = 0;
  uint32_t phase_drifts = 0;  // times so far that baseline code has drifted
  uint64_t slower_calls = 0;  // calls when optimized code was last found slower; 0: never
  LoopId at_loop;             // the loop that the thread is in; none at an entry
  uint64_t calls = 0;
  uint64_t samples = 0;  // sampled calls and bursts
  uint64_t iterations = 0;
  uint64_t sampled_work = 0;  // sum of count * instructions over blocks, as counted
  double sampled_share = 1;   // of calls and iterations, in (0, 1]
  uint64_t saved_work = 0;    // like sampled_work, for one run of the saved profile; 0: none
  uint64_t saved_samples = 0;
  uint64_t behind_work = 0;  // estimated instructions that frames in baseline code have executed
                             // although there is, or will be, optimized code; see `behind`
};

struct SystemSnapshot {
  uint32_t queue_length = 0;  // requests in the queue; a value that falls only once the queue is
                              // half as long
  bool code_budget_spent = false;
  double compile_ns = 0;   // measured, for a method of this size; 0: use the estimate in
                           // PolicyOptions
  double speedup = 0;      // measured, likewise
  double baseline_ns = 0;  // measured, likewise
};

// The Options of the same names, which have units and ranges. trial_z: critical value of the rank test
// of a trial. trial_margin: least relative slowdown for which a version is rolled back.
struct PolicyOptions {
  PolicyMode mode = PolicyMode::kAuto;
  uint64_t min_samples = 2;
  double speedup = 3.0;
  double compile_ns = 2500.0;
  double baseline_ns = 1.0;
  uint64_t max_recompiles = 8;
  uint64_t exit_limit = 100;
  uint64_t exit_limit_loop = 5;
  uint64_t exit_retries = 3;
  uint64_t drift_samples = 256;
  double epsilon = 0.02;
  double trial_z = 3.1;  // odds of one in a thousand
  double trial_margin = 0.05;
  // For versions that are made for one value of a parameter.
  double value_share = 0.95;
  uint64_t value_samples = 64;
  double miss_share = 0.2;

  static PolicyOptions from(const Options& o);
};

struct Decision {
  Action action = Action::kKeep;
  LoopId osr_loop;      // none: a version for the method's entry
  double priority = 0;  // expected gain in ns; larger is more urgent
  std::string reason;
};

// Returns the library's answer. Pure: the same arguments always give the same decision. Any thread.
Decision decide(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o);

// Returns why every answer but keep would be refused, or null: an optimizing compilation failed, a
// version is being made, there are too many, and so on. `loop` is the loop where the version would
// be entered; none for one that calls enter. Pure; static storage.
const char* obstacle(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o,
                     LoopId loop = LoopId::none());

// A policy made by the host, for Runtime::create. Inline, like all virtual functions of hosts,
// because hosts may be compiled with RTTI and the library is not.
class Policy {
 public:
  virtual ~Policy() = default;
  // Answers with keep, recompile (without the profile) or specialize (with it); osr_loop is none or
  // the snapshot's at_loop. Any other answer, and one that obstacle() rules out, counts as keep.
  // The log has the answer with its reason and its inputs.
  //
  // Asked at each flush of a method with Options::tier = auto, and when a thread runs long in a
  // loop. When baseline or optimized code has drifted, it is asked at once, with
  // MethodSnapshot::phase_drift or drift. Not asked about exits, trials and values; they have
  // Options.
  //
  // Thread: the runtime's worker, or a thread that flushes, detaches or (for methods in a saved
  // profile) calls; one at a time, with the runtime's lock held, so it must not call the runtime.
  // Errors: it must not throw.
  virtual Decision decide(const MethodSnapshot& m, const SystemSnapshot& s,
                          const PolicyOptions& o) = 0;
};

// Makes a logged decision again, from DecisionRecord::inputs. The inputs hold all fields of both
// snapshots, with doubles that are restored bit for bit. Old logs have no phase_drift,
// phase_drifts, behind_work and osr_elsewhere; they are read as 0. With the options of the run and the library's policy, the
// result is the logged decision. Other options, or another `policy` (null: decide()), give the
// decision that they would have made at this point; later effects of such a decision are not
// simulated. `action`, `reason` and `priority` of the result have the form of the log.
//
// Thread: any. Errors: kInvalidInput, with the name of the field that is unknown, missing, given
// twice or not a number; also for a record without inputs, which is an event and no decision. An
// event with the action "set" changed an option for all later decisions: its reason is NAME=VALUE,
// for Options::set. (Without a `=` it is a Runtime::observe, which affects no decision.)
Result<DecisionRecord> replay(const DecisionRecord& r, const PolicyOptions& o,
                              Policy* policy = nullptr);

}  // namespace uptier
