// Method: the stable identity that a host registered, and what is in service for it.
//
// What slow paths of any thread read is atomic and published with release after everything it leads
// to; the rest belongs to whoever holds the mutex named beside it. A freed version has
// given back its code and stays as a line of the report, until kVersionsKept make it go.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "jit/code/code.h"
#include "jit/code/poll_words.h"
#include "jit/inlinee.h"
#include "jit/ir/code_shape.h"
#include "jit/ir/function.h"
#include "jit/ir/loop_scope.h"
#include "jit/ir/slot_laws.h"
#include "profile/estimate.h"
#include "sampler/convergence.h"
#include "sampler/fast_sample.h"
#include "sampler/schedule.h"
#include "tiering/made_later.h"
#include "tiering/observe/probe_set.h"
#include "tiering/policy/trial.h"
#include "tiering/policy/value_versions.h"
#include "tiering/saved/saved_method.h"
#include "tiering/transitions/exits.h"
#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// Monotonic time.
uint64_t now_ns();
// Returns the processor time of the calling thread.
uint64_t thread_cpu_ns();

// Why frames are called back.
enum class OsrOut : uint32_t {
  kObserve = 1,   // to the loop's instrumented copy for a while; from there, whether that is over
  kNewer = 2,     // there may be newer code, or it can be had
  kAnywhere = 3,  // the code is not to be run any more: to plainer code if there is no newer
};

// Sets a word that a loop asks; osr_out.cc.
void raise_word(jit::PollWord& word, OsrOut to) noexcept;

// What an indirect call reaches, estimated.
struct TargetCounts {
  std::map<MethodKey, double> of;
  double other = 0;
};
using TargetsBySite = std::map<SiteId, TargetCounts>;

// What code was made from of a body that is inlined into it.
struct InlinedOrigin {
  jit::InlinePath path;
  std::vector<float> blocks;   // executions by block site - 1
  double error = 1;            // how far their shares may lie from the truth of their time
  TargetsBySite targets = {};  // of its indirect calls
};

// What the instrumented copy of optimized code counts of an inlined body: words in a row, behind
// those of the method's own blocks.
struct InlinedSection {
  jit::InlinePath path;
  std::vector<SiteId> sites;                            // rising
  uint32_t word = 0;                                    // of the first one, in the slab
  std::vector<std::pair<SlotKind, SiteId>> slots = {};  // these, and those of its probes and calls
};

// What it observes of an indirect call or a probe of such a body: words in a row, behind all of
// these.
struct InlinedSlot {
  uint32_t section = 0;  // the body, by its place in Version::sections
  SlotKind kind = SlotKind::kCallTarget;
  jit::InlinedProbe at;
  uint32_t word = 0;  // of the first one, in the slab
  uint32_t words = 0;
};

// One compiled body, in service or retired. What is added here, a copy in another place has as well
// (version_of in code/relay.cc).
struct Version {
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop;         // where it is entered; none for a normal entry
  bool from_host = false;  // entered there from a frame of the host's interpreter
  bool enterable = false;  // baseline code for frames that leave optimized code; no call reaches it
  const void* entry = nullptr;
  std::unique_ptr<jit::Code> code;  // null for the host's own
  HostCode host_code;
  Host* host = nullptr;  // who takes host_code back
  MethodId method;
  bool freed = false;
  bool moved = false;  // another version has the same code in another place, and all that was known
  uint64_t code_bytes = 0;
  uint64_t compile_ns = 0;
  uint64_t compile_cpu_ns = 0;              // of the thread that compiled
  uint64_t installed_ns = 0;                // when it came into service, and
  uint64_t retired_ns = 0;                  // when it was taken out, by now_ns(); 0: it was not
  uint32_t inlined = 0;                     // bodies of callees
  std::vector<double> made_from;            // executions by block site - 1, of plain optimized code
  double made_error = 1;                    // how far these may lie from the truth of their time
  TargetsBySite made_targets;               // likewise, of its own indirect calls
  std::vector<InlinedOrigin> made_inlined;  // likewise, of what is inlined
  // Of an instrumented copy of optimized code:
  uint32_t copy_number = 0;              // which of the method's it is; 0: it never was in service
  uint32_t copy_words = 0;               // that its slab has at least, and those before it had
  std::vector<InlinedSection> sections;  // by rising word
  std::vector<InlinedSlot> slots;        // likewise
  uint64_t newest_method = 0;            // the ordinal of one that there was when it came
  jit::LoopScope scope;                  // of one that is entered at a loop
  // Of a version for some values of the parameters: what its guard sends other calls to, which
  // stays in service as long. Its entry is the guard's.
  const Version* general = nullptr;
  jit::ValueGuard guard;
  std::vector<jit::ParamValue> values;
  jit::GuardWords guard_words;
  // What long loops of optimized code ask, see osr_out.cc: by LoopId an OsrOut, or 0. Empty in other
  // code.
  jit::PollRun polls;
  uint64_t serial = 0;            // versions are numbered in the order in which they are begun
  std::vector<MethodId> by_stub;  // callees that the code reaches by their stubs
  // Places of all methods that the code means: it calls them, has their bodies in it, or compares
  // their stubs' addresses. By rising index; see code/places.h.
  std::vector<uint32_t> refers_to;
  std::vector<uint32_t> bodies;  // those of them whose bodies it has in it
  // Guarded by Runtime's state mutex.
  bool outdated = false;             // one of these can be reached past its stub now
  std::atomic<bool> retired{false};  // relaxed: a slow path that is late goes where it still may
  // Of a version that a host's interpreter enters: what its code takes for granted of the frame, and
  // whether a frame that is otherwise was reported. Relaxed: twice would do no harm.
  std::vector<jit::SlotLaw> slot_laws;
  mutable std::atomic<bool> frame_refused{false};

  Version() = default;
  ~Version() { give_back(); }  // it may have been made too late to come into service

  void call_back(OsrOut why) const noexcept;

  // Gives the code back; the caller knows that nothing runs it.
  void free() noexcept {
    if (freed) return;
    freed = true;
    code.reset();
    guard.code = {};
    polls = {};
    give_back();
  }
  // Gives back what the host made.
  void give_back() noexcept {
    if (host != nullptr) std::exchange(host, nullptr)->release(method, host_code);
  }
};

// Versions that a method has at most, if all but so many are freed: code that comes and goes again and
// again must not take more and more memory.
inline constexpr size_t kVersionsKept = 64;

// Whether frames may go to a version. What was usable stays so until the thread that asks is
// quiescent or blocked, even if it is retired meanwhile.
inline bool usable(const Version* v) noexcept {
  return v != nullptr && !v->retired.load(std::memory_order_relaxed);
}

// What one thread has flushed of a method, or all that have gone (ended_streams.cc). Cumulative.
// Where threads share their counters, what was counted is that of a stream of its own, thread 0.
struct Stream {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint32_t flushes = 0;
  bool described = false;       // its InstrumentationDesc went to the sink
  uint64_t interval = 0;        // of its windows, if they all had one
  bool mixed = false;           // they had not
  std::vector<uint64_t> words;  // of the slab
  std::vector<uint64_t> traps;  // frames that traps unwound, by block site - 1
  profile::Observed seen;       // what these mean, and what they stand for
  profile::Coverage coverage;   // what that was counted in
  double dual_error = 0;
  bool ended = false;  // of threads that have gone: `seen` is all there is, and stands for all
  std::vector<jit::AllExecutions> executions;  // of loops, with loop_dual
};

// Set in the number of the stream of what a thread has observed of optimized code.
inline constexpr uint32_t kOptimizedStream = 1u << 31;
// The number of the stream of threads that have gone.
inline constexpr uint32_t kEndedStream = kOptimizedStream - 1;

// What all threads together have seen of a body where it is inlined.
struct SeenInPlace {
  std::map<SiteId, InlinedBlock> blocks;
  InlinedSites sites;
};
using InlinedSeen = std::map<jit::InlinePath, SeenInPlace>;

// The same as the trace has it: one for each path and set of slots that copies counted there.
struct InlinedStream {
  uint32_t number = 0;  // among those of the method it is inlined into
  Schema schema;
  profile::Observed seen;  // of blocks
  InlinedSites sites;
  uint64_t samples = 0;  // of the root's copies that counted it
  uint64_t weight = 0;   // that the last of them had
  uint32_t flushes = 0;
  bool described = false;
};
using InlinedStreams =
    std::map<std::pair<jit::InlinePath, std::vector<std::pair<SlotKind, SiteId>>>, InlinedStream>;

// What a thread handed over last of inlined bodies.
struct InlinedWords {
  uint32_t copy = 0;               // which copy counted it
  std::vector<uint64_t> words;     // of blocks
  std::vector<InlinedSite> slots;  // by Version::slots
};

// Where the adaptive schedule is with a method; see rate_control.h.
struct Adaptation {
  enum class Phase : uint8_t { kLearning, kKnown, kLooking };
  Phase phase = Phase::kLearning;
  bool resting = false;  // known so well that its instrumented copy has gone
  uint32_t windows = 0;  // that its convergence had compared when the look began
  uint32_t burst = 0;  // iterations of a slot of its loops, from when it is observed on; 0: options
  double next_look = 0;       // while it rests: opportunities at which a look is due
  double drift = 0;           // distance of a window that the policy has not been asked about yet
  sampler::Progress gone;     // of threads that have detached
  sampler::Progress at_tick;  // of all threads, at the last tick
};

// What never changes of a loop that is timed.
struct TimedLoop {
  LoopId loop;  // none for the function's body
  LoopId parent;
  uint32_t depth = 0;
  uint32_t height = 0;
  uint32_t location = 0;         // 0: not known
  uint32_t within = UINT32_MAX;  // the next timed one outwards, by its place in the list; or none
};

// What the windows of an instrumented copy of optimized code say; see copy_windows.cc.
struct CopyWindows {
  // What the copy counts, by word of its slab: block site - 1, and behind these tables of targets, and
  // all of inlined bodies.
  std::vector<bool> observed;
  sampler::Convergence convergence;   // of its windows
  std::vector<double> known, recent;  // what it counted, up to the last whole window and since
  bool misled = false;                // it was said that the code was made from another profile
  uint64_t samples = 0;               // in all its windows
  double drift = 0;   // how far at least `known` is from what the code was made from; 0: not known
  bool told = false;  // that nothing follows from the drift

  // How far what is known may lie from the truth.
  double error() const;
  void forget(double epsilon);
};

// What has been seen of optimized code, and what was asked for because of it.
struct OptimizedSeen {
  CopyWindows windows;
  bool asked = false;         // once for each optimized version
  uint64_t calls_before = 0;  // calls that were known of when that one came into service
  uint32_t copies = 0;        // that were in service so far
  uint32_t most_words = 0;    // that one of them had
  std::map<uint32_t, InlinedWords> words;  // by thread number
  // By site and callee: its word, in what has come of the site's table. The method's whole life.
  std::map<std::pair<SiteId, MethodKey>, uint32_t> target_words;
  // Likewise of calls in inlined bodies.
  std::map<std::tuple<jit::InlinePath, SiteId, MethodKey>, uint32_t> inlined_target_words;
};

// What is observed of optimized code; see observe_optimized.cc.
struct OptimizedCopy {
  std::atomic<const Version*> version{nullptr};  // in service; read by slow paths without a lock
  // The one before has gone with its version, and another is being made: rates stay as they are.
  // Relaxed: whoever is late samples once more, or once less.
  std::atomic<bool> expected{false};
  MadeLater<OptimizedSeen> seen;  // guarded by Runtime's state mutex
};

// What is observed of optimized code that frames stay in, at one of their loops; see
// observe_loops.cc. The counts of copies, and what is known of all of them, are OptimizedCopy's.
struct LoopCopy {
  std::atomic<const Version*> version{nullptr};  // in service; read by slow paths without a lock
  // Guarded by Runtime's state mutex.
  bool asked = false;  // once for each plain version
  CopyWindows windows;
};
struct LoopCopies {
  std::unique_ptr<LoopCopy[]> at;  // by LoopId
  // Guarded by Runtime's state mutex: when the first frame answered, and what was compiled since for
  // nothing but observing.
  uint64_t began_ns = 0;
  uint64_t compile_ns = 0;
};

// What code is made from when the program has changed its mind; see phase.h.
struct SeenPhase {
  std::vector<uint64_t> blocks;  // by block site - 1, from windows of optimized code; or empty
  double error = 1;              // how far these may lie from the truth
  std::map<jit::InlinePath, jit::InlinedBlocks> inlined;     // the same windows of inlined bodies
  TargetsBySite targets;                                     // and of its own indirect calls
  std::map<jit::InlinePath, TargetsBySite> inlined_targets;  // and of those of inlined bodies
  std::vector<uint64_t> before;  // estimates when baseline code drifted; or empty
  uint64_t samples_before = 0;
};

// Until when a host may be asked for a method: while it is in service; and when it was retired, until
// nothing is left that could ask. `kTold`: then gone() is to be called, or is being called.
enum class HostUse : uint8_t { kServes, kUntilGone, kTold, kOver };

struct Method {
  Method(MethodId id, uint64_t ordinal, Host& host, MethodInfo info)
      : id(id), ordinal(ordinal), host(host), info(std::move(info)) {}

  const MethodId id;
  const uint64_t ordinal;  // which of all methods of the runtime's life it is, from 1
  Host& host;
  const MethodInfo info;

  // The host's interpreter as calls reach it; null where there is none, or it may trap and has not
  // been called yet. Written under the state mutex.
  std::atomic<const void*> host_code{nullptr};

  // Read by slow paths without a lock. Stores are releases that pair with acquire loads there.
  std::atomic<const Version*> plain{nullptr};
  std::atomic<const Version*> instrumented{nullptr};
  std::atomic<const Version*> optimized{nullptr};
  OptimizedCopy optimized_copy;
  MadeLater<LoopCopies> loop_copies;               // made once, and then as it is
  std::atomic<const Version*> enterable{nullptr};  // see deopt.cc
  std::atomic<Trial*> trial{nullptr};              // of the version in service, while it lasts
  // The number of loops and one more, once what follows has been made; 0: not described yet.
  std::atomic<uint32_t> loops_known{0};
  // By LoopId; made before `plain` is published, never resized.
  std::unique_ptr<std::atomic<const Version*>[]> osr;
  std::unique_ptr<std::atomic<const Version*>[]> osr_from_host;
  std::unique_ptr<std::atomic<bool>[]> osr_asked;  // one request a loop and thread is enough
  std::vector<uint32_t> osr_versions;              // made so far, by LoopId; state mutex
  std::vector<Version*> stub_callers;              // who wants to know it optimized; state mutex
  // Published before `instrumented`. kNotPlanned: what is to be observed will be known when an
  // instrumented copy is asked for, and will be something.
  static constexpr uint32_t kNotPlanned = UINT32_MAX;
  std::atomic<uint32_t> slab_words{0};
  uint64_t* shared = nullptr;  // likewise; the slab of all threads, or null
  std::atomic<bool> copy_asked{false};
  std::atomic<bool> failed{false};  // the first compilation failed: calls trap
  // What it calls has been described ahead (warm_start.cc), or it is too late for that: set before the
  // host is asked for the first time. Relaxed: whoever is late waits for compile_mutex.
  std::atomic<bool> prepared{false};
  std::atomic<bool> wake_after_call{false};  // a first call has queued something for the worker
  std::atomic<uint64_t> osr_entries{0};
  std::atomic<uint64_t> osr_outs{0};  // frames of older code that went on in newer
  std::atomic<uint64_t> left{0};  // frames that left optimized code, or baseline code for the host
  std::atomic<uint64_t> left_for_host{0};  // of these
  MethodExits exits;                       // made with the shape
  // Exact mode: the number of the call at which the next event is due, and who handles it.
  std::atomic<uint64_t> event_call{1};
  std::atomic<bool> event_claimed{false};
  sampler::CallPlan event_plan;  // the claimer's

  // Held while the host describes the body and it is compiled: never two builds of one method.
  std::mutex compile_mutex;
  bool shape_known = false;  // set by the first description; what follows is then constant
  uint64_t cfg_hash = 0;
  const void* alias_scope =
      nullptr;  // the host's: who inlines the body may come when that has died
  std::unique_ptr<jit::Function> described;  // by who did not compile it; or null
  uint32_t instructions = 0;                 // of the IR
  uint32_t loop_count = 0;
  std::vector<uint32_t> block_weights;  // instructions by block site - 1
  // Planned by the first description that code which counts is made from, and then constant; exits,
  // loops and value sites with it. Slow paths that read it across a wait hold the Method as well:
  // the reclaimer looks for that.
  MadeLater<ProbeSet> probes;
  std::vector<TimedLoop> timed_loops;  // by site; loops.cc
  // With a profile that outlives the process only; saved_calls.cc.
  MadeLater<CodeShape> code_shape;
  std::vector<jit::DirectCall> direct_calls;

  std::vector<uint64_t> shared_slab;  // of shared counters; made with the shape

  // By LoopId; made when loops may change copies without asking, and never moved.
  std::unique_ptr<sampler::LoopCell[]> loop_cells;

  // Guarded by Runtime's state mutex.
  sampler::Convergence convergence;
  Adaptation adaptation;
  bool has_flushed = false;  // a first flush has come, so ticks look at it
  MadeLater<SeenPhase> seen_phase;
  MadeLater<ValueVersions> value_versions;
  // No interpreter and no optimized code was ever in service: all calls and iterations ran code
  // that can count them.
  bool only_baseline = info.host_entry == nullptr;
  uint32_t drift_versions = 0;  // optimized versions made for drift
  uint64_t slower_calls = 0;    // calls when a trial found optimized code slower than baseline code
  std::vector<std::unique_ptr<Version>> versions;
  std::vector<std::unique_ptr<Trial>> trials;
  std::map<uint32_t, Stream> streams;  // by thread number
  // Likewise, of the same streams.
  std::map<uint32_t, ForgottenTargets> forgotten_targets;
  InlinedSeen inlined_seen;
  InlinedStreams inlined_streams;
  uint32_t inlined_numbers = 0;        // of inlined_streams so far
  std::unique_ptr<SavedMethod> saved;  // what earlier processes saw, of this code; or null
  std::vector<bool> osr_requested;     // by LoopId
  bool optimized_requested = false;
  uint64_t first_call = 0;  // which of all methods' first calls its was; 0: none that was noticed
  bool code_made = false;   // for its calls, perhaps before the first
  bool announced = false;   // its MethodDetails went to the sink
  bool optimize_failed = false;
  bool guard_banned = false;  // one that the host declared: the method is not optimized any more
  bool removed = false;
  bool retired = false;  // it was removed, and frames may have gone on since
  HostUse host_use = HostUse::kServes;
  std::thread::id teller;  // who calls gone()
  // What could ask the host, or lead to what does: versions that are not freed, its own but for
  // enterable ones and those that have its body in them; when it was removed, threads that may look
  // at it still.
  uint32_t holds = 0;
  bool looked_at = false;                     // of these, threads
  bool forgotten = false;                     // its place has been given away, or nearly
  uint64_t removed_at = 0;                    // which of all removals it was, from 1; 0: it was not
  std::unique_ptr<const jit::Function> body;  // as built, for callers that inline it; or null
  bool unlinked = false;                      // its code is there, but its cell asks; see evict.cc
  bool wants_optimized = false;               // was optimized when it was evicted
  uint64_t last_active = 0;                   // when it was last heard of; InService::touch()
  uint32_t optimized_versions = 0;
  std::vector<jit::LoopRange> loop_ranges;  // of the latest instrumented copy
  std::string last_error;
};

// Returns what is observed of a loop; null before the first of the method's was to be. Any thread.
LoopCopy* loop_copy(const Method& m, LoopId loop) noexcept;
// The same, made if need be.
LoopCopy& own_loop_copy(Method& m, LoopId loop);

// The iterations that are a slot of a method's loops (sampler/schedule.h), of rates that adapt.
inline uint64_t slot_of(const Method& m, const Options& options) {
  return m.adaptation.burst != 0 ? m.adaptation.burst : options.burst;
}

}  // namespace uptier::tiering
