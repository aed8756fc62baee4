// Method: the stable identity that a host registered, and its code in service.
//
// A large program registers many methods and calls few. So a Method itself has only the state that
// calls, installs and removals need. The rest is in parts that are made when they are first needed;
// the law of each is at the top of its header, and a part reads as empty before it is made
// (made_later.h):
//
//   shape        by the first description           tiering/model/method_shape.h
//   flushed      by the first flush                 tiering/model/flushed.h
//   optimizing   by optimized code                  tiering/model/optimizing.h
//
// Members that slow paths of any thread read are atomic; they are published with release, after
// everything they refer to. The others need the mutex that is named next to them. A slow path that
// reads a part across a wait also holds a pointer to the Method, which the reclaimer finds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jit/ir/function.h"
#include "sampler/schedule.h"
#include "tiering/base/made_later.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/flushed.h"
#include "tiering/model/method_shape.h"
#include "tiering/model/optimizing.h"
#include "tiering/model/probe_set.h"
#include "tiering/model/saved_method.h"
#include "tiering/model/value_versions.h"
#include "tiering/model/version.h"
#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/options.h"

namespace uptier::tiering {

// The period in which a host may be asked for a method: while the method is in service; and if it
// was retired, until nothing is left that could ask. `kTold`: gone() is about to be called, or is
// being called.
enum class HostUse : uint8_t { kServes, kUntilGone, kTold, kOver };

// One countdown for the calls of all threads: when the next event is due, and who handles it.
struct ExactCalls {
  std::atomic<uint64_t> event_call{1};  // the number of the call
  std::atomic<bool> claimed{false};
  sampler::CallPlan plan;  // used by the claimer
};

struct Method {
  Method(MethodId id, uint64_t ordinal, Host& host, MethodInfo info)
      : id(id), ordinal(ordinal), host(host), info(std::move(info)) {}

  bool has_shape() const noexcept { return shape.made() != nullptr; }
  // Says whether the host has described it differently too often.
  bool is_unstable() const noexcept {
    return unlike.load(std::memory_order_relaxed) >= kMostUnlike;
  }

  const MethodId id;
  const uint64_t ordinal;  // its number among all methods of the runtime's life, from 1
  Host& host;
  const MethodInfo info;

  // ---- In service: read by slow paths without a lock ----------------------------------------------

  // The host's interpreter, as calls reach it; null if there is none, or if it may trap and has not
  // been called yet. Written under the state mutex.
  std::atomic<const void*> host_code{nullptr};
  // Stores are releases that pair with acquire loads there.
  std::atomic<const Version*> plain{nullptr};
  std::atomic<const Version*> instrumented{nullptr};
  std::atomic<const Version*> optimized{nullptr};
  std::atomic<const Version*> enterable{nullptr};  // see deopt.cc
  // Published before `instrumented`. kNotPlanned: the probes are planned when an instrumented copy
  // is requested, and there will be some.
  static constexpr uint32_t kNotPlanned = UINT32_MAX;
  std::atomic<uint32_t> slab_words{0};
  std::atomic<bool> copy_asked{false};
  // It may be observed and optimized; written by Finding.
  std::atomic<bool> found{true};
  std::atomic<bool> failed{false};  // the first compilation failed: calls trap
  // The number of times that the host's description differed from the first one. At kMostUnlike,
  // the method gets no better code any more. Written by the thread that has the method's turn.
  static constexpr uint32_t kMostUnlike = 4;
  std::atomic<uint32_t> unlike{0};
  // Its callees have been described ahead (warm_start.cc), or it is too late for that: set before
  // the host is asked for the first time. Relaxed: a late thread waits for the method's turn.
  std::atomic<bool> prepared{false};
  std::atomic<bool> wake_after_call{false};  // a first call has queued work for the worker
  std::unique_ptr<ExactCalls> exact;         // made with the method, with GapMode::kExact only

  bool plainly =
      false;  // during compilation: describe the body in plain form (jit/frontend/plain_form.h)

  // ---- Made later ---------------------------------------------------------------------------------

  MadeLater<MethodShape> shape;
  // Planned by the first description for code that counts, and constant from then on; so are the
  // exits, loops and value sites.
  MadeLater<ProbeSet> probes;
  // With the state mutex.
  MadeLater<Flushed> flushed;
  MadeLater<Optimizing> optimizing;
  MadeLater<ValueVersions> value_versions;
  MadeLater<std::vector<Version*>> stub_callers;  // versions to notify when it is optimized
  MadeLater<std::string> last_error;
  std::unique_ptr<SavedMethod> saved;         // data of earlier processes for this code; or null
  std::unique_ptr<const jit::Function> body;  // as built, for callers that inline it; or null

  // ---- With the state mutex -----------------------------------------------------------------------

  std::vector<std::unique_ptr<Version>> versions UPTIER_GUARDED_BY(state_lock);
  // Its position among the first calls of all methods; 0: not recorded.
  uint64_t first_call UPTIER_GUARDED_BY(state_lock) = 0;
  // Time of its last activity; InService::touch().
  uint64_t last_active UPTIER_GUARDED_BY(state_lock) = 0;
  // Its position among all removals, from 1; 0: not removed.
  uint64_t removed_at UPTIER_GUARDED_BY(state_lock) = 0;
  // The thread that calls gone().
  std::thread::id teller UPTIER_GUARDED_BY(state_lock);
  // GoneHosts: the next method in the list.
  Method* next_gone UPTIER_GUARDED_BY(state_lock) = nullptr;
  // The number of things that may still ask the host: the method's own versions that are not freed
  // (except enterable ones), other versions that have its body inlined, and, after its removal, the
  // threads that may still look at it.
  uint32_t holds UPTIER_GUARDED_BY(state_lock) = 0;
  HostUse host_use UPTIER_GUARDED_BY(state_lock) = HostUse::kServes;
  // These include threads.
  bool looked_at UPTIER_GUARDED_BY(state_lock) = false;
  bool removed UPTIER_GUARDED_BY(state_lock) = false;
  // It was removed, and frames may have continued since.
  bool retired UPTIER_GUARDED_BY(state_lock) = false;
  // Its place has been given away, or is about to be.
  bool forgotten UPTIER_GUARDED_BY(state_lock) = false;
  // Neither an interpreter nor optimized code was ever in service: all calls and iterations ran
  // code that can count them.
  bool only_baseline UPTIER_GUARDED_BY(state_lock) = info.host_entry == nullptr;
  // A stack sample was in its body, perhaps inlined.
  bool sampled UPTIER_GUARDED_BY(state_lock) = false;
  // For calls, perhaps ahead of the first call.
  bool code_made UPTIER_GUARDED_BY(state_lock) = false;
  // Its MethodDetails went to the sink.
  bool announced UPTIER_GUARDED_BY(state_lock) = false;
  bool optimized_requested UPTIER_GUARDED_BY(state_lock) = false;
  bool optimize_failed UPTIER_GUARDED_BY(state_lock) = false;
  // For a guard declared by the host: the method is not optimized any more.
  bool guard_banned UPTIER_GUARDED_BY(state_lock) = false;
  // It has code, but its cell points to the slow path; see eviction.h.
  bool unlinked UPTIER_GUARDED_BY(state_lock) = false;
  // Was optimized when it was evicted.
  bool wants_optimized UPTIER_GUARDED_BY(state_lock) = false;
  // In code that does not count blocks, its own or a caller's.
  bool ran_optimized UPTIER_GUARDED_BY(state_lock) = false;
  // In such code, without tallies either.
  bool ran_uncounted UPTIER_GUARDED_BY(state_lock) = false;
  // Its key was made by MethodKeys.
  bool key_made UPTIER_GUARDED_BY(state_lock) = false;
  // And this was counted.
  bool shares_key UPTIER_GUARDED_BY(state_lock) = false;
};

// Returns the observation of a loop, or null if no loop of the method was observed yet. Thread:
// any.
LoopCopy* loop_copy(const Method& m, LoopId loop) noexcept;
// The same, but makes it if necessary.
LoopCopy& own_loop_copy(Method& m, LoopId loop);

// The iterations per slot of a method's loops (sampler/schedule.h), if rates adapt.
inline uint64_t slot_of(const Method& m, const Options& options) {
  uint32_t own = m.flushed->adaptation.burst;
  return own != 0 ? own : options.burst;
}

}  // namespace uptier::tiering
