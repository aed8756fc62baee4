// Method: the stable identity that a host registered, and its code that is in service.
//
// A large program registers many methods and calls few, so a Method has in itself only what calls,
// installs and removals look at. The rest is in parts that are made when they are first needed; each
// has its law at the head of its header, and reads as nothing before it is made (made_later.h):
//
//   shape        by the first description           tiering/model/method_shape.h
//   flushed      by what threads hand over          tiering/model/flushed.h
//   optimizing   by optimized code                  tiering/model/optimizing.h
//
// Members that slow paths of any thread read are atomic, and are published with release after all that
// they lead to. The others may be used with the mutex that is named beside them. A slow path that reads
// a part across a wait also holds a pointer to the Method, for which the reclaimer looks.
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

// Until when a host may be asked for a method: while it is in service; and when it was retired, until
// nothing is left that could ask. `kTold`: then gone() is to be called, or is being called.
enum class HostUse : uint8_t { kServes, kUntilGone, kTold, kOver };

// One countdown for the calls of all threads: when the next event is due, and who handles it.
struct ExactCalls {
  std::atomic<uint64_t> event_call{1};  // the number of the call
  std::atomic<bool> claimed{false};
  sampler::CallPlan plan;  // the claimer's
};

struct Method {
  Method(MethodId id, uint64_t ordinal, Host& host, MethodInfo info)
      : id(id), ordinal(ordinal), host(host), info(std::move(info)) {}

  bool has_shape() const noexcept { return shape.made() != nullptr; }
  // Returns whether the host describes it differently each time.
  bool is_unstable() const noexcept {
    return unlike.load(std::memory_order_relaxed) >= kMostUnlike;
  }

  const MethodId id;
  const uint64_t ordinal;  // which of all methods of the runtime's life it is, from 1
  Host& host;
  const MethodInfo info;

  // ---- In service: read by slow paths without a lock ----------------------------------------------

  // The host's interpreter as calls reach it; null where there is none, or it may trap and has not
  // been called yet. Written under the state mutex.
  std::atomic<const void*> host_code{nullptr};
  // Stores are releases that pair with acquire loads there.
  std::atomic<const Version*> plain{nullptr};
  std::atomic<const Version*> instrumented{nullptr};
  std::atomic<const Version*> optimized{nullptr};
  std::atomic<const Version*> enterable{nullptr};  // see deopt.cc
  // Published before `instrumented`. kNotPlanned: what is to be observed will be known when an
  // instrumented copy is asked for, and will be something.
  static constexpr uint32_t kNotPlanned = UINT32_MAX;
  std::atomic<uint32_t> slab_words{0};
  std::atomic<bool> copy_asked{false};
  std::atomic<bool> failed{false};  // the first compilation failed: calls trap
  // The number of times that the host described another body than the first time. At kMostUnlike the
  // method gets no better code any more. Written by the thread that has the method's turn.
  static constexpr uint32_t kMostUnlike = 4;
  std::atomic<uint32_t> unlike{0};
  // What it calls has been described ahead (warm_start.cc), or it is too late for that: set before the
  // host is asked for the first time. Relaxed: whoever is late waits for the method's turn.
  std::atomic<bool> prepared{false};
  std::atomic<bool> wake_after_call{false};  // a first call has queued something for the worker
  std::unique_ptr<ExactCalls> exact;         // made with the method, with GapMode::kExact only

  bool plainly =
      false;  // while it is compiled: the body is described plainly (jit/frontend/plain_form.h)

  // ---- Made later ---------------------------------------------------------------------------------

  MadeLater<MethodShape> shape;
  // Planned by the first description that code which counts is made from, and then constant; exits,
  // loops and value sites with it.
  MadeLater<ProbeSet> probes;
  // With the state mutex.
  MadeLater<Flushed> flushed;
  MadeLater<Optimizing> optimizing;
  MadeLater<ValueVersions> value_versions;
  MadeLater<std::vector<Version*>> stub_callers;  // who wants to know it optimized
  MadeLater<std::string> last_error;
  std::unique_ptr<SavedMethod> saved;         // what earlier processes saw, of this code; or null
  std::unique_ptr<const jit::Function> body;  // as built, for callers that inline it; or null

  // ---- With the state mutex -----------------------------------------------------------------------

  std::vector<std::unique_ptr<Version>> versions;
  uint64_t first_call = 0;   // which of all methods' first calls its was; 0: none that was noticed
  uint64_t last_active = 0;  // when it was last heard of; InService::touch()
  uint64_t removed_at = 0;   // which of all removals it was, from 1; 0: it was not
  std::thread::id teller;    // who calls gone()
  Method* next_gone = nullptr;  // GoneHosts: whose host is told next
  // The number of things through which the host may still be asked: the method's own versions that are
  // not freed (enterable ones are not counted), other versions that have its body inlined, and after its
  // removal the threads that may still look at it.
  uint32_t holds = 0;
  HostUse host_use = HostUse::kServes;
  bool looked_at = false;  // threads are among these
  bool removed = false;
  bool retired = false;    // it was removed, and frames may have gone on since
  bool forgotten = false;  // its place has been given away, or nearly
  // No interpreter and no optimized code was ever in service: all calls and iterations ran code
  // that can count them.
  bool only_baseline = info.host_entry == nullptr;
  bool code_made = false;  // for its calls, perhaps before the first
  bool announced = false;  // its MethodDetails went to the sink
  bool optimized_requested = false;
  bool optimize_failed = false;
  bool guard_banned = false;     // one that the host declared: the method is not optimized any more
  bool unlinked = false;         // its code is there, but its cell asks; see eviction.h
  bool wants_optimized = false;  // was optimized when it was evicted
  bool ran_optimized = false;    // in code whose blocks do not count, its own or a caller's
  bool ran_uncounted = false;    // in such code that has no tallies either
  bool key_made = false;         // by MethodKeys
  bool shares_key = false;       // which was counted
};

// Returns the observation of a loop, or null before any loop of the method was observed. Any thread.
LoopCopy* loop_copy(const Method& m, LoopId loop) noexcept;
// The same, made if need be.
LoopCopy& own_loop_copy(Method& m, LoopId loop);

// The iterations that are a slot of a method's loops (sampler/schedule.h), of rates that adapt.
inline uint64_t slot_of(const Method& m, const Options& options) {
  uint32_t own = m.flushed->adaptation.burst;
  return own != 0 ? own : options.burst;
}

}  // namespace uptier::tiering
