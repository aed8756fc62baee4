// Observer: takes what threads have flushed, tells the trace, and asks the policy.
//
//   note + counters -> stream of (method, thread) -> events to the sink
//                   -> snapshot -> decide -> log
//
// Counters are cumulative, so a stream keeps the last snapshot and nothing is ever added twice.
//
//   Thread: the caller holds the runtime's state mutex; so calls to the sink never overlap.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sampler/snapshot_ring.h"
#include "tiering/base/clock.h"
#include "tiering/base/opt_range.h"
#include "tiering/events/decision_log.h"
#include "tiering/model/method.h"
#include "tiering/observe/method_keys.h"
#include "tiering/policy/policy.h"
#include "uptier/options.h"
#include "uptier/profile.h"
#include "uptier/report.h"
#include "uptier/trace.h"

namespace uptier::tiering {

// What threads have done of a method.
struct Totals {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
};

class Observer {
 public:
  // All outlive this; `sink` and `policy` may be null. `live` is what of the options changes.
  Observer(const Options& options, const Options& live, const sampler::Ladder& ladder,
           TraceSink* sink, Policy* policy, Events& events);

  // Begins the trace; before the first event.
  void begin();
  // Says how code addresses become methods; before the first snapshot.
  void set_method_at(MethodAt f) { method_at_ = std::move(f); }
  // Says which method an id is, or null when it is nobody's any more; likewise.
  void set_method_of(std::function<Method*(MethodId)> f) { method_of_ = std::move(f); }
  bool traces() const { return sink_ != nullptr; }
  // Makes a method one that others may be observed to call.
  void know(Method& m) {
    keys_.add(m, method_of(m.info.key));
    by_key_[m.info.key] = &m;
  }
  // Makes it unknown, for good.
  void forget(const Method& m) {
    auto at = by_key_.find(m.info.key);
    if (at == by_key_.end() || at->second != &m) return;
    keys_.forget(m.info.key);
    by_key_.erase(at);
  }
  MethodKeys& keys() { return keys_; }
  const MethodKeys& keys() const { return keys_; }

  // Stores a snapshot and emits its events. Returns what the window that it ends says of the
  // method.
  sampler::Verdict take(Method& m, uint32_t thread, const sampler::Note& note,
                        std::span<const uint64_t> counts);
  // The same of what the instrumented copy of optimized code has counted: a stream of its own.
  // `rounds`: of a copy whose samples are rounds of a loop. Returns what came on.
  sampler::Window take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                 std::span<const uint64_t> counts, bool rounds);
  // Adds what came on, by word, in the blocks of the bodies that are inlined into a method's copy, in so
  // many samples that the thread has just handed over, and what their slots hold now: `counts` is the
  // whole slab. Makes of `came` what a window has of all of these words.
  void take_inlined(Method& m, uint32_t thread, const Version& copy,
                    std::span<const uint64_t> counts, std::vector<uint64_t>& came,
                    uint64_t samples);
  // Takes what a stream's tables hold of methods that are about to be forgotten out of what it has
  // seen of them, from now on; see forgotten_targets.cc.
  void forget_targets(Method& m, uint32_t stream, const ForgottenTargets& held);
  // Counts frames of a thread that a trap unwound.
  void take_trap(Method& m, uint32_t thread, SiteId block, uint64_t frames);
  // Takes the streams of a thread, which has flushed and will not again, into that of all that have
  // gone.
  void end_streams(Method& m, uint32_t thread);
  // Asks the policy about a method after a note, and logs the answer.
  Decision ask(Method& m, const sampler::Note& note, const SystemSnapshot& system);
  // Asks about the version that frames stay in at a loop: `windows` are of its copy, and it has run
  // for `ns`, as far as is known.
  Decision ask_loop(Method& m, LoopId loop, CopyWindows& windows, double ns,
                    const SystemSnapshot& system);
  // Asks about a method that has not been called yet, but has a saved profile.
  Decision ask_saved(Method& m, const SystemSnapshot& system);
  // What the policy is asked with at an entry.
  MethodSnapshot snapshot_of(const Method& m) const;
  // Logs what was decided elsewhere, or (without inputs) noticed.
  void log(const Method& m, std::string action, std::string reason, std::string inputs = {});

  // Logs what is of no method.
  void log_event(std::string action, std::string what);
  // Returns the method that has a key, or null.
  Method* method_of(const MethodKey& key) const {
    auto at = by_key_.find(key);
    return at == by_key_.end() ? nullptr : at->second;
  }
  // Decisions go by these from here on.
  void set_policy_options(const PolicyOptions& o) { policy_ = o; }
  // Bursts of methods that have been observed get another length: how many there could have been is
  // not known any more.
  void lengths_of_bursts_differ() { one_burst_ = false; }
  void keep_decisions(uint64_t kept) { decisions_.keep(kept); }

  // Returns the sum over the streams of a method.
  MethodProfile profile_of(const Method& m) const;
  // Returns what was seen of the bodies that are inlined into a method, of callees that are there.
  InlinedBodies inlined_of(const Method& m) const;
  // Returns estimated executions by block site - 1, empty when there are fewer than min_samples
  // samples.
  std::vector<uint64_t> block_estimates(const Method& m) const;
  // Returns how many of these executions one observed execution stands for on average, at least
  // the part of one that profile_decay leaves of saved ones; 1 if nothing was observed.
  double sample_weight(const Method& m) const;
  // What the indirect calls of a method were observed to reach; estimates, greatest first.
  struct Targets {
    SiteId site = 0;
    uint64_t total = 0;
    std::vector<std::pair<Method*, uint64_t>> methods;
  };
  std::vector<Targets> targets_of(const Method& m) const;
  // Makes of targets what a phase has seen of them.
  void take_over(const TargetCounts& phase, Targets& targets) const;
  // Returns how many samples there are of a method.
  uint64_t samples_of(const Method& m) const;
  // Returns the estimated executions of all blocks together.
  double mass_of(const Method& m) const;
  // The same of targets of indirect calls.
  double target_mass_of(const Method& m) const;

  // Tells the trace which of all methods' first calls that of a method was.
  void tell_first_call(Method& m, uint64_t position) {
    emit(FirstCallEvent{announce(m), position});
  }
  // Ends the trace. `dropped`: events that could not be delivered.
  void finish();
  uint64_t trace_events_lost() const { return trace_events_lost_; }
  const std::deque<DecisionRecord>& decisions() const { return decisions_.records(); }
  const std::deque<uint64_t>& decided_ns() const { return decisions_.times(); }
  uint64_t decisions_forgotten() const { return decisions_.forgotten(); }

 private:
  Decision answer(Method& m, const sampler::Note& note, const MethodSnapshot& s,
                  const SystemSnapshot& system, bool* told = nullptr);
  MethodSnapshot snapshot(const Method& m, const sampler::Note& note) const;
  bool never_sampled(const Method& m, const sampler::Note& note) const;
  void end_stream(Method& m, uint32_t thread);
  // forgotten_targets.cc
  void age(Method& m, uint32_t stream, uint64_t entries);
  void age_optimized(Method& m, uint32_t stream, std::span<const uint64_t> words);
  static const ForgottenTargets& forgotten_in(const Method& m, uint32_t stream);
  static void keep_forgotten(Method& m, uint32_t stream, std::span<const uint64_t> words);
  void add_saved(const Method& m, std::vector<double>& blocks) const;
  // By what counts of the saved profile are multiplied.
  double saved_factor(const SavedMethod& saved) const;
  double stretch_of(const Method& m, const Stream& s) const;
  // Whether nobody knows which thread's calls were whose.
  bool one_countdown(const Method& m) const;
  profile::StreamSum stream_sum(const Method& m) const;
  // `counted`: what threads share was counted by this stream.
  void add_to_sum(const Method& m, const Stream& s, bool counted, profile::StreamSum& sum,
                  profile::Observed& seen) const;
  MethodProfile empty_profile_of(const Method& m) const;
  uint64_t weight_of_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                               uint64_t samples);
  uint64_t weight_of(const Method& m, const sampler::Note& note, const Totals& t,
                     Stream& counted) const;
  sampler::Verdict end_window(Method& m, uint32_t stream, uint64_t entries, uint64_t new_samples,
                              uint64_t weight, uint64_t nominal);
  // Numbers a decision and emits it.
  void decided(DecisionRecord& r);
  // Returns whether the sink took it, or there is none.
  bool emit(const TraceEvent& e);
  void emit_flush(Method& m, uint32_t thread, const sampler::Note& note, uint64_t weight);
  uint64_t announce(Method& m);
  bool all_known(const jit::InlinePath& path) const;
  void note_inlined(Method& m, const InlinedSection& section, std::span<const uint64_t> came,
                    uint64_t samples, uint64_t weight);
  InlinedStream& inlined_stream(Method& m, const InlinedSection& section, const Version& copy);
  // observe_inlined_slots.cc
  struct Step {  // of a slot, from one snapshot to the next
    InlinedSite before, now;
  };
  std::vector<Step> take_slots(Method& m, uint32_t thread, const Version& copy,
                               std::span<const uint64_t> counts, uint64_t samples, uint64_t weight);
  InlinedSite read_slot(const Version& copy, const InlinedSlot& slot,
                        std::span<const uint64_t> counts) const;
  void emit_inlined(Method& m, const jit::InlinePath& path, InlinedStream& s);

  const Options& options_;
  const Options& live_;
  bool one_burst_ = true;
  const sampler::Ladder& ladder_;
  PolicyOptions policy_;
  Policy* const hosts_policy_;
  OptRange opt_range_;
  TraceSink* sink_;
  MethodAt method_at_;
  std::function<Method*(MethodId)> method_of_;
  std::map<MethodKey, Method*> by_key_;
  bool begun_ = false;
  MethodKeys keys_;
  uint64_t trace_events_lost_ = 0;
  Events& events_;
  uint64_t decided_ = 0;  // decisions so far
  DecisionLog decisions_;
};

}  // namespace uptier::tiering
