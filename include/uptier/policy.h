// policy.h: what becomes of a method, as a pure function of what is known of it; a policy of the
// host's in its place; and decisions of a log made again.
//
// With
//   work   instructions of the IR executed so far, estimated:
//            sampled    sum over blocks of count * instructions, divided by the sampled share
//            unsampled  calls * instructions + iterations * instructions per loop
//            saved      of a profile that earlier processes have left, and of one run: what is
//                       still to come while this one has done less
//   past   the greater of executed and saved work * baseline_ns, and the future is taken to be as
//          long as the past (Arnold et al., OOPSLA 2000)
//   baseline_ns  that baseline code takes for an instruction, as measured on a body of our own at
//          the start, and on methods by trials; assumed where measuring is off, or it was set
//   speedup  of optimized code over baseline code, as measured by trials of both, assumed before
//   rate   ns that the optimizing compiler takes for an instruction: as measured in this process,
//          from the start on; compile_ns where measuring is off
//   cost   instructions * rate * (1 + queue / 64), so that a long queue raises the bar; it falls
//          when the queue has become half as long, so that it does not swing with each request
//
// a method is worth a better version when
//
//   cost + past / speedup < past                                            (1)
//
// and the answer is
//
//   keep        (1) does not hold, a version is on its way, or the method is at its best
//   keep        fewer than min_samples samples, saved ones included, unless waiting cannot help
//               (no copy can be had, or all threads that call are soon gone)
//   specialize  (1) holds and the profile has min_samples samples
//   recompile   (1) holds, and there will be no profile; or the method is still in Tier::kHost,
//               whose code cannot be costed, and has been called, or its loop has iterated, as
//               often as its first flush says
//
// Optimized code may turn out to have been made from another profile than it runs with. With
//   drift  how far at least the two lie apart: the share of executions that the code is laid out
//          wrongly for, taken to be no better than baseline code
//   since  what the version has run so far: past * (its share of the calls) / speedup, and the
//          future is as long again
//   limit  drift_samples * 2^(versions made for drift so far), in samples of the version
// it is worth another version, from the counts of the recent windows, when
//
//   cost < since * drift * (1 - 1 / speedup)   and   samples >= limit                       (2)
//
// so a program that changes its mind for ever is followed ever more slowly, and max_recompiles ends
// it. The answer is
//   keep        the drift is below epsilon, or (2) does not hold
//   specialize  (2) holds
//
// Optimized code that a trial has found slower than baseline code is taken back. What made it slow
// may be gone with another profile, so after 16 times as many calls as there were then the method
// may be optimized again; until then the answer is keep.
//
// A frame that runs a loop is better served by OSR when one call is worth a compilation by itself,
// which is (1) for past / calls.
//
// Exits, trials of two versions, and values are decided by rules of the same kind, which replay()
// knows as well (tiering/policy).
#pragma once

#include <cstdint>
#include <string>

#include "uptier/ids.h"
#include "uptier/options.h"
#include "uptier/report.h"
#include "uptier/result.h"

namespace uptier {

enum class Action : uint8_t { kKeep, kRecompile, kSpecialize, kRollBack, kReInstrument, kBan };
const char* action_name(Action a);

// Everything about a method that a decision may look at.
struct MethodSnapshot {
  Tier tier = Tier::kBaseline;
  bool optimized_requested = false;  // a normal version is queued or being made
  bool osr_requested = false;        // one for `at_loop`, likewise
  bool osr_ready = false;            // `at_loop` can be entered already
  bool can_instrument = true;        // samples can be waited for: a copy can be had, threads stay
  bool failed = false;               // an optimizing compilation failed before
  bool excluded = false;             // its hash lies outside Options::opt_range
  bool guard_banned = false;         // one that its host declared, so it cannot be optimized
  uint32_t instructions = 0;         // of the IR
  uint32_t loops = 0;
  uint32_t optimized_versions = 0;  // made so far
  // Of the optimized version in service, as its own instrumented copy has seen it:
  double drift = 0;             // see (2); 0: none is known
  uint64_t drift_samples = 0;   // samples of the version
  uint64_t version_calls = 0;   // calls since it came into service
  uint32_t drift_versions = 0;  // made for drift so far
  // Of baseline code: how far the window that is the reason for this question lies from those
  // before, as a share of executions, 0..1. 0 in all questions but the first since a drift. decide()
  // does not go by it: what code is made from is what was seen since.
  double phase_drift = 0;
  uint32_t phase_drifts = 0;  // times so far that baseline code has drifted
  uint64_t slower_calls = 0;  // calls when optimized code was last found slower; 0: never
  LoopId at_loop;             // where the thread is; none at an entry
  uint64_t calls = 0;
  uint64_t samples = 0;  // sampled calls and bursts
  uint64_t iterations = 0;
  uint64_t sampled_work = 0;  // sum of count * instructions over blocks, as counted
  double sampled_share = 1;   // of calls and iterations, in (0, 1]
  uint64_t saved_work = 0;    // as sampled_work, of one run of the saved profile; 0: none
  uint64_t saved_samples = 0;
};

struct SystemSnapshot {
  uint32_t queue_length = 0;  // of requests; once longer, until it is half as long as it was
  bool code_budget_spent = false;
  double compile_ns = 0;   // of a method of this size, as measured; 0: PolicyOptions has a guess
  double speedup = 0;      // likewise
  double baseline_ns = 0;  // likewise
};

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
  double trial_z = 3.1;  // one in a thousand
  double trial_margin = 0.05;
  // Of value_policy.h.
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

// Returns the library's answer. Pure: the same arguments give the same decision, for ever. Any
// thread.
Decision decide(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o);

// Returns why no answer but keep can be followed, or null: an optimizing compilation failed, a
// version is on its way, there are too many, and so on. `loop`: of the version that is thought of;
// none for one that calls enter. Pure.
const char* obstacle(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o,
                     LoopId loop = LoopId::none());

// A policy of the host's, for Runtime::create. Inline, as all virtual functions of hosts: they may
// be compiled with RTTI, the library is not.
class Policy {
 public:
  virtual ~Policy() = default;
  // Answers with keep, recompile (without the profile) or specialize (with it); osr_loop is none or
  // the snapshot's at_loop. Anything else, and what obstacle() rules out, is taken for keep. The
  // answer stands in the log with its reason, and beside it what it was made from.
  //
  // Asked at each flush of a method that a thread makes with Options::tier = auto, and when a
  // thread runs long in a loop. When code has drifted, baseline or optimized, it is asked at once,
  // with MethodSnapshot::phase_drift or drift. Not about exits, trials and values; there is Options
  // for these.
  //
  // Thread: the runtime's worker, or a thread that flushes, detaches or (for methods that a saved
  // profile knows) calls; one at a time, with the runtime's lock held: it must not call the
  // runtime. Errors: none may leave it.
  virtual Decision decide(const MethodSnapshot& m, const SystemSnapshot& s,
                          const PolicyOptions& o) = 0;
};

// Makes a decision of a log again, from DecisionRecord::inputs, which hold all fields of both
// snapshots, doubles so that they come back bit for bit. Logs from before there were phase_drift
// and phase_drifts have none of them, which is read as 0. With the options of the run and no policy
// of the host's, what comes out is what the log says. Other options, or another `policy` (may be
// null: decide()), give what it would have said at this point, not what that would have led to.
// `action`, `reason` and `priority` of the result are as a log has them. Any thread. Errors:
// kInvalidInput, with the name of the field that is unknown, missing, given twice or no number;
// also for a record without inputs: there something was noticed, and nothing decided. One of these
// with the action "set" changed an option for all that follow: its reason is NAME=VALUE, for
// Options::set. (Without a `=` it is what Runtime::observe did, on which no decision depends.)
Result<DecisionRecord> replay(const DecisionRecord& r, const PolicyOptions& o,
                              Policy* policy = nullptr);

}  // namespace uptier
