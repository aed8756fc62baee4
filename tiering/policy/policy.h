// Policy: what becomes of a method, as a pure function of what is known of it.
//
// With
//   work   instructions of the IR executed so far, estimated:
//            sampled    sum over blocks of count * instructions, divided by the sampled share
//            unsampled  calls * instructions + iterations * instructions per loop
//            saved      of a profile that earlier processes have left, and of one run: what is
//                       still to come while this one has done less
//   past   the greater of executed and saved work * baseline_ns, and the future is taken to be as
//          long as the past (Arnold et al., OOPSLA 2000)
//   speedup  of optimized code over baseline code, as measured by trials (trial.h), assumed before
//   rate   ns that the optimizing compiler takes for an instruction: as measured in this process
//          (compile_rate.h), compile_ns before and where measuring is off
//   cost   instructions * rate * (1 + queue / 64), so that a long queue raises the bar
//
// a method is worth a better version when
//
//   cost + past / speedup < past                                            (1)
//
// and the answer is
//
//   keep        (1) does not hold, a version is on its way, or the method is at its best
//   keep        fewer than min_samples samples, saved ones included, unless waiting cannot help
//               (no copy can be had)
//   specialize  (1) holds and the profile has min_samples samples
//   recompile   (1) holds, and there will be no profile; or the method is still in Tier::kHost,
//               whose code cannot be costed, and has been called, or its loop has iterated, as
//               often as its first flush says
//
// Optimized code may turn out to have been made from another profile than it runs with
// (observe_optimized.cc). With
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
// A version that takes the place of another optimized one is timed against it (trial.h). With the
// rank test's z (rank_sum.h), and medians of the cycles of a call, the answer is
//   roll_back  z >= trial_z   and   median of the new > (1 + trial_margin) * median of the old (3)
//   keep       else, and for what was timed only to know the speedup
// so that of versions that are alike one in a thousand is taken back, if it looks slower by a
// twentieth as well.
//
// A site at which optimized code is left too often is not worth its speculation. With
//   limit  exit_limit (in a loop exit_limit_loop) * 2^retries
// of exits since the last answer, decide_exit says
//   keep       fewer than the limit
//   recompile  the limit is met: with what is known by now. A guard that the host declared stays
//              whatever is known, so nothing is compiled, and the answer is keep
//   ban        the limit is met after exit_retries times: code never speculates there again; a
//              method whose host declared the guard leaves optimized code for good
//
// A frame that runs a loop is better served by OSR when one call is worth a compilation by itself,
// which is (1) for past / calls.
#pragma once

#include <cstdint>
#include <string>

#include "uptier/ids.h"
#include "uptier/options.h"

namespace uptier::tiering {

enum class Action : uint8_t { kKeep, kRecompile, kSpecialize, kRollBack, kReInstrument, kBan };
const char* action_name(Action a);

// Everything about a method that a decision may look at.
struct MethodSnapshot {
  Tier tier = Tier::kBaseline;
  bool optimized_requested = false;  // a normal version is queued or being made
  bool osr_requested = false;        // one for `at_loop`, likewise
  bool osr_ready = false;            // `at_loop` can be entered already
  bool can_instrument = true;        // an instrumented copy exists or can be made
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
  LoopId at_loop;               // where the thread is; none at an entry
  uint64_t calls = 0;
  uint64_t samples = 0;  // sampled calls and bursts
  uint64_t iterations = 0;
  uint64_t sampled_work = 0;  // sum of count * instructions over blocks, as counted
  double sampled_share = 1;   // of calls and iterations, in (0, 1]
  uint64_t saved_work = 0;    // as sampled_work, of one run of the saved profile; 0: none
  uint64_t saved_samples = 0;
};

struct SystemSnapshot {
  uint32_t queue_length = 0;
  bool code_budget_spent = false;
  double compile_ns = 0;  // rate, as measured; 0: PolicyOptions has what is assumed
  double speedup = 0;     // likewise
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

// What is known of a place where optimized code is left.
struct ExitSnapshot {
  uint64_t exits = 0;    // since the last answer that was no keep
  uint32_t retries = 0;  // times that the limit was met
  bool in_loop = false;
  bool declared = false;  // a guard of the host's, which no compilation removes
};

struct ExitDecision {
  Action action = Action::kKeep;
  bool met = false;  // the limit was, which is one retry more
  std::string reason;
};

// What a trial of two versions has found.
struct TrialSnapshot {
  uint64_t before_samples = 0, now_samples = 0;  // calls timed
  uint64_t before_cycles = 0, now_cycles = 0;    // medians
  double z = 0;                                  // positive: the new version is slower
  bool tiers = false;                            // the old one is baseline code
};

// Pure as well.
Decision decide_trial(const TrialSnapshot& t, const PolicyOptions& o);

// Returns the exits after which the policy is asked about a site.
uint64_t exit_limit(const ExitSnapshot& e, const PolicyOptions& o);
// Pure as well.
ExitDecision decide_exit(const ExitSnapshot& e, const PolicyOptions& o);

// Returns the samples of a version after which drift may replace it.
uint64_t drift_limit(const MethodSnapshot& m, const PolicyOptions& o);

// Returns `past` of (1).
double past_ns(const MethodSnapshot& m, const PolicyOptions& o);

// Pure: the same arguments give the same decision, for ever.
Decision decide(const MethodSnapshot& m, const SystemSnapshot& s, const PolicyOptions& o);

}  // namespace uptier::tiering
