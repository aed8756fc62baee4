// c_events.h: the events of a runtime in C. Part of uptier.h; programs include that.
//
// A host subscribes with a function and receives one record for each event. <uptier/events.h> has the
// rules: order, delivering threads, losses, the end, and cost.
//
// A subscriber may read the runtime (reports, totals, decisions, queries), interrupt its threads,
// subscribe and unsubscribe, itself included. Functions that would change the runtime's state are
// refused with UPTIER_INVALID_ARGUMENT while it is being called. It must not call entries of
// methods nor destroy the runtime, and it should be quick, because the worker waits for it.
#pragma once

#include "uptier/c_policy.h"
#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Records ------------------------------------------------------------------------------------

// The kind of a record. EventKind in <uptier/events.h> has the details of each.
typedef uint32_t uptier_event_kind;
enum {
  UPTIER_EVENT_LOST,           // `count` records were lost, from `sequence` or `thread_sequence` on
  UPTIER_EVENT_ADDED,          // a method was registered; text: its name
  UPTIER_EVENT_REMOVED,        // a method was taken out of service; text: "removed" or "retired"
  UPTIER_EVENT_FORGOTTEN,      // the report dropped a freed `version`, or (0) a removed method
  UPTIER_EVENT_DESCRIBED,      // the host described a method, in `duration_ns`
  UPTIER_EVENT_COMPILED,       // a version was made, in `duration_ns`; it is not in service yet
  UPTIER_EVENT_FAILED,         // no version was made; text: why. Asking again would fail again
  UPTIER_EVENT_REFUSED,        // likewise, for lack of room or memory: it may work later
  UPTIER_EVENT_DROPPED,        // a request to compile did not fit into the queue
  UPTIER_EVENT_INSTALLED,      // a version came into service
  UPTIER_EVENT_FIRST_CALL,     // code was made for a first call; count: its number among these
  UPTIER_EVENT_ENTERED,        // a frame went on in `version` at `loop`, from `other_version`
  UPTIER_EVENT_LEFT,           // a frame left `version`; text: why; count: the exit (EventKind)
  UPTIER_EVENT_RETIRED,        // a version went out of service; frames may still run it
  UPTIER_EVENT_FREED,          // the memory of a version's code was given back: `bytes`
  UPTIER_EVENT_MOVED,          // a version's code was copied to another place, which took over
  UPTIER_EVENT_EVICTED,        // a method gave up its code to make room
  UPTIER_EVENT_FLUSHED,        // counts of `thread` were taken over; count: its calls so far
  UPTIER_EVENT_DECIDED,        // the policy decided, or something was noticed; see `decision`
  UPTIER_EVENT_SAVED,          // the profile file was written; text: the error, or ""
  UPTIER_EVENT_WORKER_PAUSED,  // the worker waits for work
  UPTIER_EVENT_WORKER_RESUMED,  // it was woken, or makes a periodic check: up to 100 times a second
  UPTIER_EVENT_ENDED,           // the runtime ends: the last record
  UPTIER_EVENT_KIND_COUNT
};
// Returns "lost", "added", ..., "worker_paused", ...; "?" for a number that is no kind. Static
// storage; any thread.
const char* uptier_event_kind_name(uptier_event_kind kind) UPTIER_NOEXCEPT;

// A set of kinds: UPTIER_EVENTS_OF(kind), combined with |. 0 stands for all kinds.
typedef uint64_t uptier_event_kinds;
#define UPTIER_EVENTS_OF(kind) ((uptier_event_kinds)1 << (kind))

// A part of a description or compilation.
typedef struct uptier_event_phase {
  const char* name;  // static storage, e.g. "verify", "licm"
  uint64_t duration_ns;
} uptier_event_phase;

// One record, valid until the function that receives it returns. Every record has kind, sequence,
// at_ns and text; the other members are 0 unless the kind has them.
typedef struct uptier_event {
  size_t size;               // of the part that the library has filled in
  uptier_event_kind kind;    // later versions of the library may send other kinds: ignore them
  uptier_method method;      // none if the event is not about a method
  uint64_t sequence;         // number of the change; ENTERED, LEFT: the last the thread had seen
  uint64_t thread_sequence;  // ENTERED, LEFT: its number among the thread's, from 1
  uint64_t at_ns;            // when it happened or ended: CLOCK_MONOTONIC
  uint64_t duration_ns;      // how long it took; INSTALLED: to compile the version
  uint64_t version;          // serial number of a version, unique in the runtime's life; 0: none
  uint64_t
      other_version;  // ENTERED, LEFT: where a frame came from or went to; 0: not known, or the
                      // interpreter. INSTALLED: the version before it; 0: none
  uint64_t bytes;     // size of a version's code
  uint64_t count;     // as the kind says; COMPILED, INSTALLED: bodies that were inlined
  uint32_t thread;    // number of the attachment (uptier_runtime_thread_number); 0: none
  uint32_t native_thread;  // the kernel number of the thread where it happened (gettid)
  uptier_tier tier;        // with `version`: its quality,
  uint32_t instrumented;   // 1 if it observes what it runs,
  uptier_loop loop;        // and the loop where frames enter it; none: at the start
  uint32_t reserved;       // 0
  const char* text;        // NUL-terminated, never NULL
  size_t text_length;      // without the NUL
  const uptier_decision_record* decision;  // DECIDED; else NULL
  // LEFT: the body that was left, of `method` or inlined into its code; `count` is an exit of it.
  uptier_method body;
  // A location for uptier_runtime_positions; 0: none. LEFT: of the exit, in `body`. DESCRIBED: of the
  // method's begin. Else, if there is a `loop`: of its header.
  uint32_t location;
  // ADDED: the key of the method in profiles.
  uint64_t module_key;
  uint64_t function_index;
  // DESCRIBED, COMPILED: the parts, in order (EventDetails in <uptier/events.h>).
  const uptier_event_phase* phases;
  size_t phase_count;
  // COMPILED: methods whose bodies were inlined, each once: the first 64 of `inlined_methods`.
  const uptier_method* inlined;
  size_t inlined_count;
  uint64_t inlined_methods;
} uptier_event;

// Receives a record. Calls for one subscription never overlap, but may come from different threads.
typedef void (*uptier_event_function)(void* user, const uptier_event* event);

// ---- Subscriptions ------------------------------------------------------------------------------

// A subscription to one runtime. `id` 0 is none; no number is given twice.
typedef struct uptier_subscription {
  uint64_t id;
} uptier_subscription;

typedef struct uptier_subscriber {
  size_t size;  // sizeof(uptier_subscriber)
  void* user;   // passed to the function
  uptier_event_function receive;
  // The kinds that it wants; 0: all. LOST also comes to a subscriber that did not ask for it, if it
  // counts records that the subscriber might have received.
  uptier_event_kinds kinds;
} uptier_subscriber;

// Makes a subscriber receive the events of a runtime from now on. `to` is copied. Its function and
// `user` must be usable until the subscription has ended, or the runtime has been destroyed.
//
//   out   receives the subscription, before the first record is delivered; may be NULL if it is to
//         last as long as the runtime
//   last  receives the number of the last record that is not delivered to it; may be NULL. Reports
//         include what happened up to there
//
// Errors: UPTIER_UNSUPPORTED for kinds that this library does not know.
uptier_status uptier_runtime_subscribe(uptier_runtime* runtime, const uptier_subscriber* to,
                                       uptier_subscription* out, uint64_t* last,
                                       uptier_error* error) UPTIER_NOEXCEPT;

// A subscriber of the events of code, with a function for each. A function that is NULL is not
// called.
typedef struct uptier_code_events {
  size_t size;                      // sizeof(uptier_code_events)
  void* user;                       // passed to the functions
  uptier_event_function compiled;   // COMPILED: a version was made
  uptier_event_function installed;  // INSTALLED: it came into service
  uptier_event_function left;       // LEFT: a frame left it at a guard
  uptier_event_function evicted;    // EVICTED: a method gave up its code to make room
  uptier_event_function lost;       // LOST: records of these kinds may be missing here
} uptier_code_events;

// The same for the events of code, each delivered to its function. At least one function other than
// `lost` must not be NULL.
uptier_status uptier_runtime_subscribe_code(uptier_runtime* runtime, const uptier_code_events* to,
                                            uptier_subscription* out, uint64_t* last,
                                            uptier_error* error) UPTIER_NOEXCEPT;

// Ends a subscription. When it returns, its function is not running on another thread and will not
// be called again; earlier events have been delivered. So the caller must not hold a lock that the
// function waits for. In a subscriber, records that have not been delivered yet are dropped.
// Errors: UPTIER_NOT_FOUND if it has ended already or never was.
uptier_status uptier_runtime_unsubscribe(uptier_runtime* runtime, uptier_subscription subscription,
                                         uptier_error* error) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
