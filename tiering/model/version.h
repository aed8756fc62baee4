// Version: one compiled body of a method, in service or retired.
//
// Slow paths read only members that are atomic, or constant once the version is in service. A freed
// version has given back its code and remains as a line of the report, until there are
// kVersionsKept.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "jit/analysis/loop_scope.h"
#include "jit/analysis/param_uses.h"
#include "jit/analysis/slot_laws.h"
#include "jit/code/code.h"
#include "jit/code/poll_words.h"
#include "jit/code/value_guard.h"
#include "jit/opt/inlinee.h"
#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// The reason for calling frames back.
enum class OsrOut : uint32_t {
  kObserve = 1,   // to the loop's instrumented copy for a while; in that copy: to check whether the
                  // time is over
  kNewer = 2,     // there may be newer code, or it can be made
  kAnywhere = 3,  // the code must not run any more: to plainer code if there is no newer code
};

// Set in a poll word, next to an OsrOut: a thread must stop, perhaps the polling one.
inline constexpr uint32_t kStops = 1u << 31;
// Returns the request in a poll word; OsrOut{} if there is none.
constexpr OsrOut reason_in(uint32_t word) { return static_cast<OsrOut>(word & ~kStops); }
// Raises a poll word to `to`; a word with a higher request stays as it is.
void raise_word(jit::PollWord& word, OsrOut to) noexcept;

// The estimated targets of an indirect call.
struct TargetCounts {
  std::map<MethodKey, double> of;
  double other = 0;
};
using TargetsBySite = std::map<SiteId, TargetCounts>;

// The profile that an inlined body was compiled with.
struct InlinedOrigin {
  jit::InlinePath path;
  std::vector<float> blocks;   // executions by block site - 1
  double error = 1;            // bound on the distance of their shares from the truth of their time
  TargetsBySite targets = {};  // of its indirect calls
};

// The slab words in which the instrumented copy of optimized code counts an inlined body:
// consecutive, after the words of the method's own blocks.
struct InlinedSection {
  jit::InlinePath path;
  std::vector<SiteId> sites;                            // rising
  uint32_t word = 0;                                    // of the first one, in the slab
  std::vector<std::pair<SlotKind, SiteId>> slots = {};  // these blocks, and the slots of its probes
                                                        // and calls
};

// The slab words in which it counts an indirect call or a probe of an inlined body: consecutive,
// after all sections.
struct InlinedSlot {
  uint32_t section = 0;  // the body, by its index in Version::sections
  SlotKind kind = SlotKind::kCallTarget;
  jit::InlinedProbe at;
  uint32_t word = 0;  // of the first one, in the slab
  uint32_t words = 0;
};

// One compiled body, in service or retired. If members are added here, version_of() in
// serve/code_compaction.cc must copy them to moved versions.
struct Version {
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop;             // the loop where it is entered; none for a normal entry
  bool from_host = false;      // entered there from a frame of the host's interpreter
  uint32_t loop_location = 0;  // of that loop's header; 0: none
  bool enterable = false;  // baseline code for frames that exit optimized code; no call reaches it
  const void* entry = nullptr;
  std::unique_ptr<jit::Code> code;  // null for code made by the host
  HostCode host_code;
  Host* host = nullptr;  // takes host_code back
  MethodId method;
  bool from_image = false;  // its code was not compiled in this process
  bool freed = false;
  bool moved = false;  // another version has the same code in another place, and all the data
  uint64_t code_bytes = 0;
  uint64_t compile_ns = 0;
  uint64_t compile_cpu_ns = 0;              // of the thread that compiled
  uint64_t installed_ns = 0;                // when it was installed, by now_ns(); 0: never
  uint64_t retired_ns = 0;                  // when it was retired; 0: it was not
  uint32_t inlined = 0;                     // number of inlined bodies
  std::vector<double> made_from;            // executions by block site - 1, of plain optimized code
  double made_error = 1;                    // bound on their distance from the truth of their time
  TargetsBySite made_targets;               // likewise, of its own indirect calls
  std::vector<InlinedOrigin> made_inlined;  // likewise, of inlined bodies
  // The exact counts of the code, by body: 0 is the method's own.
  jit::TallyTable tallies;
  jit::TallySource* tally_source = nullptr;  // takes the words back if no code has run
  std::vector<jit::InlinePath> tally_paths;
  // These belong to an instrumented copy of optimized code:
  uint32_t copy_number = 0;              // its number among the method's copies; 0: it was never in
                                         // service
  uint32_t copy_words = 0;               // least size of its slab, considering earlier copies
  std::vector<InlinedSection> sections;  // by rising word
  std::vector<InlinedSlot> slots;        // likewise
  uint64_t newest_method = 0;            // the ordinal of the newest method when it was installed
  jit::LoopScope scope;                  // of a version that is entered at a loop
  // These belong to a version for values of the parameters. Its guard sends all other calls to
  // `general`, which stays in service as long. The version is entered at its guard.
  const Version* general = nullptr;
  jit::ValueGuard guard;
  std::vector<jit::ParamValue> values;
  jit::GuardWords guard_words;
  // The poll words of long loops of optimized code, see osr_exit.h: by LoopId an OsrOut, or 0.
  // Empty in other code.
  jit::PollRun polls;
  uint64_t serial = 0;            // versions are numbered in the order in which they are begun
  std::vector<MethodId> by_stub;  // callees that the code calls by their stubs
  // Places of all methods that the code refers to: it calls them, has inlined them, or compares
  // their stubs' addresses. By rising index; see places.h.
  std::vector<uint32_t> refers_to;
  std::vector<uint32_t> bodies;  // the inlined ones of them
  // Guarded by Runtime's state mutex.
  bool outdated = false;             // a callee in by_stub can now be called past its stub
  std::atomic<bool> retired{false};  // relaxed: a late slow path still enters code that it may
                                     // enter
  // These belong to a version that a host's interpreter enters: the assumptions of its code about
  // the frame, and whether a frame that breaks them was reported. Relaxed: two reports would do no
  // harm.
  std::vector<jit::SlotLaw> slot_laws;
  mutable std::atomic<bool> frame_refused{false};

  Version() = default;
  ~Version() {  // it may never have been installed
    give_back();
    bool unused = installed_ns == 0 && tally_source != nullptr && tallies.taken() != 0;
    if (unused) tally_source->give_unused(tallies.first(), tallies.taken());
  }

  void call_back(OsrOut why) const noexcept;

  // Gives the code back; the caller makes sure that nothing runs it.
  void free() noexcept {
    if (freed) return;
    freed = true;
    code.reset();
    guard.code = {};
    polls = {};
    give_back();
  }
  // Gives back code made by the host.
  void give_back() noexcept {
    if (host != nullptr) std::exchange(host, nullptr)->release(method, host_code);
  }
};

// The largest number of versions of a method, if all others are freed: code that comes and goes
// must not take more and more memory.
inline constexpr size_t kVersionsKept = 64;

// Says whether frames may enter a version. A usable version stays enterable until the calling
// thread is quiescent or blocked, even if it is retired meanwhile.
inline bool usable(const Version* v) noexcept {
  return v != nullptr && !v->retired.load(std::memory_order_relaxed);
}

}  // namespace uptier::tiering
