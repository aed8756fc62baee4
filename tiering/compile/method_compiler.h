// MethodCompiler: from a Plan to a Version: describe, verify, compile.
//
// The law: what fails here never fails a running method. Nothing is put in service, and of a method
// nothing changes but what is learnt about it: its shape from its first description, what is to be
// observed when code that counts is first made.
//
//   Thread: any, one a method: the caller has the method's turn (compile_turns.h), looks around
//   (LookingAround), and does not hold the state mutex, which is taken for what is read of others; but
//   copies_first(), polls_refused(), and what ends in _locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/code/code_space.h"
#include "jit/code/poll_words.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "jit/compile/compile.h"
#include "jit/frontend/spare_build.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/model/method_table.h"
#include "tiering/model/places.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/value_policy.h"
#include "tiering/saved/saved_profile.h"
#include "uptier/options.h"
#include "uptier/plan.h"

namespace uptier::tiering {

class MethodCompiler {
 public:
  // What it works with; all outlive it.
  struct Parts {
    const Options& options;
    const Options& live;          // what of the options changes, and
    const PolicyOptions& policy;  // what follows from it: read with the state mutex
    const ProbeChoice& probe_choice;
    bool samples_calls;        // some calls are sampled
    bool always_instrumented;  // all are
    Stress& stress;
    WaitedMutex& state_mutex;
    const MethodTable& methods;
    const Places& places;
    Observer& observer;
    SavedProfile& saved;
    KeptBodies& bodies;
    Events& events;
    jit::CodeSpace& space;
    jit::StubTable& stubs;
    jit::PollWords& poll_words;
    const jit::Routines& routines;
    const jit::Helpers& helpers;
  };
  explicit MethodCompiler(const Parts& parts);

  // Whether the code is of counts, or counts.
  enum class Observed : uint8_t { kYes, kNotYet };
  // Returns a method's description; what was described ahead of its compilation is used once.
  Result<jit::Function> describe(Method& m, Observed observed);
  // Learns what there is to know of a method; its compilation will not ask the host again.
  Status describe_ahead(Method& m);

  // Whether the instrumented copy is made with the plain one: it waits for the first sample, unless no
  // sample may be missed.
  bool copies_first(const Method& m) const;
  // Makes what `plan` asks for, by the host's compiler or ours.
  Result<std::unique_ptr<Version>> make(Method& m, const Plan& plan);
  // Makes baseline code for frames that leave better code.
  Result<std::unique_ptr<Version>> make_enterable(Method& m);
  // Makes a call of the host's function that looks for a trap when it returns. The caller holds the
  // state mutex, and need not have the turn.
  Result<std::unique_ptr<Version>> make_host_thunk_locked(const Method& m);

  // Returns how many versions had to do without words to call their frames back by.
  uint64_t polls_refused() const { return polls_refused_.load(std::memory_order_relaxed); }
  // Returns how many methods were described differently so often that they are given up.
  uint64_t unstable_bodies() const { return unstable_bodies_.load(std::memory_order_relaxed); }

 private:
  friend class CallPaths;
  friend class Inlinees;

  Method& method(uint32_t index) const { return methods_.at(index); }
  bool is_method(MethodId m) const { return methods_.serves(m); }
  // Returns the serial number of a version that begins now.
  uint64_t next_serial() { return serials_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Whether a method was removed since the earliest LookingAround that is there began.
  bool removed_meanwhile(MethodId m) const;
  Options live_options() const;

  // describe.cc
  Result<jit::Function> describe_anew(Method& m, Observed observed);
  Error refuse_unlike(Method& m);
  Result<jit::Function> ask_host(Method& m);
  Status check_size(const Method& m) const;
  Status check_callees(const Method& m, const jit::Function& f) const;
  bool plans_at_once(Method& m, const jit::Function& f);
  void place_probes(Method& m, jit::Function& f, Observed observed);
  void plan_probes(Method& m, const jit::Function& f, const jit::LoopForest& forest);
  void learn_own_locked(Method& m);

  Status make_own(Method& m, const Plan& plan, Version& v);
  Status make_ours(Method& m, const Plan& plan, Version& v);
  Status make_baseline(Method& m, const Plan& plan, Version& v);
  Status make_optimized(Method& m, const Plan& plan, Version& v);
  void take_poll_words(Version& v, uint32_t loops);
  jit::BodyProfile known_profile(Method& m, const Plan& plan, Version& v);
  void note_origin_locked(const Method& m, const jit::BodyProfile& p, Version& v) const;

  // inlinees.cc
  bool guards_may_be_inlined() const;
  jit::BodyProfile body_profile_locked(const Method& m);
  std::unique_ptr<jit::Inlinee> inlinee(MethodId id, bool profile, double& error);

  // value_speculation.cc
  std::vector<jit::SiteValues> guesses_locked(Method& m, const Plan& plan);
  Status make_guard(Method& m, Version& v);

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  const ProbeChoice& probe_choice_;
  const bool samples_calls_, always_instrumented_;
  Stress& stress_;
  WaitedMutex& state_mutex_;
  const MethodTable& methods_;
  const Places& places_;
  Observer& observer_;
  SavedProfile& saved_;
  KeptBodies& bodies_;
  Events& events_;
  jit::CodeSpace& space_;
  jit::StubTable& stubs_;
  jit::PollWords& poll_words_;
  const jit::Routines& routines_;
  const jit::Helpers& helpers_;
  jit::SpareBuild spare_build_;
  std::atomic<uint64_t> serials_{0};  // versions that were begun
  std::atomic<uint64_t> polls_refused_{0};
  std::atomic<uint64_t> unstable_bodies_{0};
};

}  // namespace uptier::tiering
