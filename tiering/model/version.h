// Version: one compiled body of a method, in service or retired.
//
// Slow paths read only members that are atomic, or constant once the version is in service. A freed
// version has given back its code and stays as a line of the report, until there are kVersionsKept.
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

// Why frames are called back.
enum class OsrOut : uint32_t {
  kObserve = 1,   // to the loop's instrumented copy for a while; from there, whether that is over
  kNewer = 2,     // there may be newer code, or it can be had
  kAnywhere = 3,  // the code is not to be run any more: to plainer code if there is no newer
};

// Set in a poll word, beside an OsrOut: a thread is to stop, perhaps the one that asks.
inline constexpr uint32_t kStops = 1u << 31;
// Returns what a poll word asks for; OsrOut{} if nothing.
constexpr OsrOut reason_in(uint32_t word) { return static_cast<OsrOut>(word & ~kStops); }
// Raises a poll word to `to`; one that asks for more already stays as it is.
void raise_word(jit::PollWord& word, OsrOut to) noexcept;

// The targets of an indirect call, estimated.
struct TargetCounts {
  std::map<MethodKey, double> of;
  double other = 0;
};
using TargetsBySite = std::map<SiteId, TargetCounts>;

// The profile of an inlined body that code was made from.
struct InlinedOrigin {
  jit::InlinePath path;
  std::vector<float> blocks;   // executions by block site - 1
  double error = 1;            // how far their shares may lie from the truth of their time
  TargetsBySite targets = {};  // of its indirect calls
};

// Words of a slab in which the instrumented copy of optimized code counts an inlined body: in a row,
// after the words of the method's own blocks.
struct InlinedSection {
  jit::InlinePath path;
  std::vector<SiteId> sites;                            // rising
  uint32_t word = 0;                                    // of the first one, in the slab
  std::vector<std::pair<SlotKind, SiteId>> slots = {};  // these, and those of its probes and calls
};

// Words of a slab in which it counts an indirect call or a probe of an inlined body: in a row, after
// all sections.
struct InlinedSlot {
  uint32_t section = 0;  // the body, by its place in Version::sections
  SlotKind kind = SlotKind::kCallTarget;
  jit::InlinedProbe at;
  uint32_t word = 0;  // of the first one, in the slab
  uint32_t words = 0;
};

// One compiled body, in service or retired. What is added here, a copy in another place has as well
// (version_of in serve/code_compaction.cc).
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
  // What the code counts exactly, and by body whose blocks these are: 0 the method's own.
  jit::TallyTable tallies;
  jit::TallySource* tally_source = nullptr;  // takes the words back if no code has run
  std::vector<jit::InlinePath> tally_paths;
  // These belong to an instrumented copy of optimized code:
  uint32_t copy_number = 0;              // which of the method's it is; 0: it never was in service
  uint32_t copy_words = 0;               // that its slab has at least, and those before it had
  std::vector<InlinedSection> sections;  // by rising word
  std::vector<InlinedSlot> slots;        // likewise
  uint64_t newest_method = 0;            // the ordinal of one that there was when it came
  jit::LoopScope scope;                  // of one that is entered at a loop
  // These belong to a version for some values of the parameters. Its guard sends all other calls to
  // `general`, which stays in service as long. The version's entry is the guard's.
  const Version* general = nullptr;
  jit::ValueGuard guard;
  std::vector<jit::ParamValue> values;
  jit::GuardWords guard_words;
  // What long loops of optimized code ask, see osr_exit.h: by LoopId an OsrOut, or 0. Empty in other
  // code.
  jit::PollRun polls;
  uint64_t serial = 0;            // versions are numbered in the order in which they are begun
  std::vector<MethodId> by_stub;  // callees that the code reaches by their stubs
  // Places of all methods that the code means: it calls them, has their bodies in it, or compares
  // their stubs' addresses. By rising index; see places.h.
  std::vector<uint32_t> refers_to;
  std::vector<uint32_t> bodies;  // those of them whose bodies it has in it
  // Guarded by Runtime's state mutex.
  bool outdated = false;             // one of these can be reached past its stub now
  std::atomic<bool> retired{false};  // relaxed: a slow path that is late goes where it still may
  // These belong to a version that a host's interpreter enters: what its code assumes about the frame,
  // and whether a frame that breaks this was reported. Relaxed: two reports would do no harm.
  std::vector<jit::SlotLaw> slot_laws;
  mutable std::atomic<bool> frame_refused{false};

  Version() = default;
  ~Version() {  // it may have been made too late to come into service
    give_back();
    bool unused = installed_ns == 0 && tally_source != nullptr && tallies.taken() != 0;
    if (unused) tally_source->give_unused(tallies.first(), tallies.taken());
  }

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

// Returns whether frames may go to a version. A version that was usable stays so until the calling
// thread is quiescent or blocked, even if it is retired meanwhile.
inline bool usable(const Version* v) noexcept {
  return v != nullptr && !v->retired.load(std::memory_order_relaxed);
}

}  // namespace uptier::tiering
