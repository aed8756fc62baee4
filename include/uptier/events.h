// events.h: the events of a runtime, record by record, for programs that subscribe to them.
//
//   state changes --numbered under the runtime's lock--> queue --------+
//                                                                      +--> drainer --> subscribers
//   a guest thread enters or leaves code ----> that thread's own ring -+
//
// Order. Every change of the runtime's state gets a number, from 1 and without gaps, under the lock
// that guards the state. Each subscriber receives these records in the order of their numbers.
// Guest threads take no lock, so their records (kEntered, kLeft) carry the last number that the
// thread had seen and a count of the thread's own. They are delivered after the record with that
// number, and those of one thread in their order. Between threads nothing is promised.
//
// Threads. One thread at a time delivers, and it holds no lock of the library while it does: the
// runtime's worker; or the thread that calls Runtime::flush or unsubscribe, or destroys the
// runtime. With Options::workers = 0 it is the thread that changed the state, after it has released
// the lock; records in a guest thread's ring wait for the next change, flush or detach. A thread
// that finds another one delivering leaves its records to that one. After Runtime::flush returns,
// all events before its call have been delivered. The runtime's destructor delivers the rest before
// it returns; kEnded is the last record.
//
// Losses. At most 16,384 numbered records wait to be delivered, and 256 in each thread's ring. If
// records do not fit, one kLost record in their place counts them; a ring that was full takes no
// more until it has been emptied. Decisions (kDecided) are never lost, unless memory itself is
// refused.
//
// Cost. Compiled code and its fast paths do nothing for events. Without subscribers a change of
// state costs an increment, and leaving code a load. With one, each record costs the thread that
// makes it well under a microsecond, and a ring of 28 KiB for each attached thread if kEntered or
// kLeft is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier {

struct DecisionRecord;  // report.h

// The kinds of events. Exits of a method (kLeft) are numbered from 0, the same in all versions: guards
// of the host in build order (ExitReport::guard - 1), then blocks in build order, then value probes.
enum class EventKind : uint8_t {
  kLost,       // records were lost here: `count` of them, from `sequence` (or `thread_sequence`) on
  kAdded,      // a method was registered; text: its name; see `details`
  kRemoved,    // a method was taken out of service; text: "removed" or "retired"
  kForgotten,  // the report dropped a freed `version`, or (0) a removed method
  kDescribed,  // the host described a method, in `duration_ns`; see `details`
  kCompiled,   // a version was made, in `duration_ns`; it is not in service yet; see `details`
  kFailed,     // no version was made; text: why. Asking again would fail again
  kRefused,    // likewise, but because of too little room or memory: it may work later
  kDropped,    // a request to compile did not fit into the queue
  kInstalled,  // a version came into service, in the place of other_version
  kFirstCall,  // code was made for a first call; count: its number among all first calls, from 1
  kEntered,    // a frame went on in `version` at `loop` (on-stack replacement), from other_version
  kLeft,  // a frame left `version` for other_version (deoptimization); text: why; count: the exit
          // of `body`
  kRetired,  // a version went out of service; frames may still run it
  kFreed,    // the memory of a version's code was given back: `bytes`
  kMoved,    // a version's code was copied to another place, which took over
  kEvicted,  // a method gave up its code to make room
  kFlushed,  // counts of `thread` were taken over; count: calls it has made of the method so far
  kDecided,  // the policy decided, or something was noticed; see `decision`
  kSaved,    // the profile file was written, in `duration_ns`; text: the error, or empty
  kWorkerPaused,   // the worker waits for work
  kWorkerResumed,  // it was woken, or makes a periodic check: up to 100 times a second
  kEnded,          // the runtime ends: the last record
};
inline constexpr size_t kEventKinds = 23;
// Returns the kind in lower-case words, e.g. "worker_paused"; "?" for a number that is no kind.
const char* event_kind_name(EventKind k);

// A set of kinds, one bit for each.
using EventKinds = uint32_t;
constexpr EventKinds kinds_of(EventKind k) { return EventKinds{1} << static_cast<unsigned>(k); }
template <typename... More>
constexpr EventKinds kinds_of(EventKind k, More... more) {
  return kinds_of(k) | kinds_of(more...);
}
inline constexpr EventKinds kAllEvents = (EventKinds{1} << kEventKinds) - 1;

// A part of a description or compilation.
struct EventPhase {
  const char* name = "";  // static text, e.g. "verify", "licm"
  uint64_t duration_ns = 0;
};

// What a kAdded, kDescribed or kCompiled record says besides.
struct EventDetails {
  static constexpr size_t kMost = 64;

  // kAdded: the key of the method in profiles.
  MethodKey key = {};
  // kDescribed, kCompiled: the parts, in the order in which they ran, without gaps from the begin on; at most kMost: further
  // time belongs to the last one. The rest of duration_ns is bookkeeping.
  std::vector<EventPhase> phases = {};
  // kCompiled: the methods whose bodies were inlined, each once, by rising number: the first kMost of
  // `inlined_methods`.
  std::vector<MethodId> inlined = {};
  uint32_t inlined_methods = 0;
};

// One record. Every record has `sequence` and `at_ns`. Other members that EventKind does not name
// for the kind keep the initial values below.
struct Event {
  EventKind kind = EventKind::kLost;
  Tier tier = Tier::kHost;   // with `version`: quality,
  Copy copy = Copy::kPlain;  // instrumentation,
  LoopId loop = {};          // and the loop where frames enter; none: at the start
  MethodId method = {};      // none if the event is not about a method
  MethodId body = {};        // kLeft: the body that was left: of `method`, or inlined into its code
  // A location for Runtime::positions, 0: none. kLeft: of the exit, in `body`. kDescribed: of the
  // method's begin. Else, if there is a `loop`: of its header.
  uint32_t location = 0;
  uint32_t thread = 0;         // number of the attachment (Runtime::thread_number); 0: none
  uint32_t native_thread = 0;  // the kernel number of the thread where it happened (gettid)
  uint64_t sequence = 0;  // number of the change; kEntered, kLeft: the last the thread had seen
  uint64_t thread_sequence = 0;  // kEntered, kLeft: its number among the thread's, from 1; else 0
  uint64_t at_ns = 0;            // when it happened or ended: CLOCK_MONOTONIC, nanoseconds
  uint64_t duration_ns = 0;      // how long it took; kInstalled: to compile the version
  uint64_t version = 0;  // serial number of a version, unique in the runtime's life; 0: none
  // kEntered, kLeft: where a frame came from or went to; 0: not known, or the host. kInstalled: what
  // calls, or frames at the loop, reached until now; 0: nothing.
  uint64_t other_version = 0;
  uint64_t bytes = 0;  // size of a version's code
  uint64_t count = 0;  // as the kind says; kCompiled, kInstalled: bodies that were inlined
  // These belong to the runtime, and are valid until the callback returns.
  std::string_view text = {};
  const DecisionRecord* decision = nullptr;
  const EventDetails* details = nullptr;  // null for other kinds, and if memory was refused
};

// Receives the records of a runtime: Runtime::subscribe.
class EventSubscriber {
 public:
  virtual ~EventSubscriber() = default;

  // Takes one record. Calls never overlap, but may come from different threads (see above).
  //
  // It may read this runtime (report(), profile(), loops(), ...), interrupt its threads, subscribe
  // and unsubscribe. Calls that would change the runtime's state are refused: those that return a
  // Status or a Result return kInvalidArgument, `invoke` ends with TrapCode::kBadCall, and the others
  // do nothing and say so in the log. It must not call entries of the runtime's methods, must not
  // destroy the runtime, and should be quick: the worker waits for it.
  virtual void on_event(const Event& event) noexcept = 0;
};

}  // namespace uptier
