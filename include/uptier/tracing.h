// tracing.h: tells tools about the activities of a program, as a stream of typed events. C99; needs
// nothing else of Uptier.
//
//   program --uptier_trace_init--> proxy (static library) --loads--> dispatcher --loads--> subscribers
//      |                                                                 ^  |
//      +-- a trace point: one test; if a tool wants it: notify ----------+  +-- callbacks, on the same thread
//
// A program links only the proxy (libuptier_trace.a). Until uptier_trace_init has loaded a
// dispatcher, every function of the table exists and does nothing, and each trace point costs one
// load and one branch that is never taken.
//
// Program, dispatcher and subscribers share nothing but the table of functions. Each struct that
// begins with `size` may get more members at its end; the code that fills it sets `size` to its own
// sizeof.
//
// Threads: all functions may be called on any thread at any time, also by callbacks, except
// uptier_trace_init and uptier_trace_finish. Nothing here is safe in a signal handler. Errors: if
// memory is refused or an argument is meaningless, functions that return a pointer or an id return
// NULL or 0, and functions that return int return 0 (false).
#ifndef UPTIER_TRACING_H
#define UPTIER_TRACING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { UPTIER_TRACE_VERSION = 1 };

// ---- Types --------------------------------------------------------------------------------------

// The type of an event. A kind is a number below UPTIER_TRACE_KINDS. A kind of activity that lasts
// has two types, the begin and the end. An event "at once" has no duration; its type is
// UPTIER_TRACE_BEGIN(kind).
typedef uint16_t uptier_trace_type;
#define UPTIER_TRACE_BEGIN(kind) ((uptier_trace_type)((kind) << 1))
#define UPTIER_TRACE_END(kind) ((uptier_trace_type)(((kind) << 1) | 1))

// Only GRAPH has a meaning for the dispatcher. The program defines the meaning of the other kinds,
// and their user data unless it is given here.
enum {
  UPTIER_TRACE_GRAPH =
      1,                // at once: a graph, to which nodes and edges belong; replayed to tools that
                        // start late
  UPTIER_TRACE_NODE,    // at once: a node was created; `parent` is its graph
  UPTIER_TRACE_EDGE,    // at once: `event` depends on `parent`; user data: its name, or NULL
  UPTIER_TRACE_REGION,  // lasts
  UPTIER_TRACE_TASK,    // lasts: one execution of a node
  UPTIER_TRACE_BARRIER,               // lasts
  UPTIER_TRACE_LOCK,                  // lasts
  UPTIER_TRACE_SIGNAL,                // at once
  UPTIER_TRACE_TRANSFER,              // lasts
  UPTIER_TRACE_THREAD,                // lasts; user data: the thread's name, or NULL
  UPTIER_TRACE_WAIT,                  // lasts
  UPTIER_TRACE_FUNCTION,              // lasts; user data of the begin: a text, or NULL
  UPTIER_TRACE_METADATA,              // at once: metadata of `event` changed
  UPTIER_TRACE_ARGUMENTS,             // lasts; user data: uptier_trace_arguments
  UPTIER_TRACE_FIRST_USER_KIND = 64,  // kinds from here on are made by user_kind()
  UPTIER_TRACE_KINDS = 256,
  UPTIER_TRACE_TYPES = 512,
};

// ---- Streams, strings, objects -------------------------------------------------------------------

// A source of events that tools choose by name. The dispatcher writes `enabled`: entry t is not 0
// while a tool wants events of type t, and always for graphs. Trace points only read it.
typedef struct uptier_trace_stream {
  uint8_t enabled[UPTIER_TRACE_TYPES];
} uptier_trace_stream;

// Ids of strings and objects. They never change, and are equal for equal contents. 0 is none.
typedef uint32_t uptier_trace_string;
typedef uint32_t uptier_trace_object;

// ---- Constructs ----------------------------------------------------------------------------------

// The place of a construct of the program, or of a guest that it runs. Texts may be NULL; `line`
// and `column` are 0 if unknown. Two constructs with a file or function are the same if file,
// function, line and column are equal; without them, two constructs are never the same.
typedef struct uptier_trace_payload {
  size_t size;
  const char* name;  // for people
  const char* file;
  const char* function;
  uint32_t line;
  uint32_t column;
  const void* address;  // address of its code, or NULL
} uptier_trace_payload;

// A construct that the dispatcher knows: a place in a program, not something that happens there
// (uptier_trace_record). Its id is never 0, and is unique in a process; event_instances counts the
// calls of event() for it.
typedef struct uptier_trace_event uptier_trace_event;

// A value of metadata. `kind` says which member of the union holds it.
enum { UPTIER_TRACE_INT, UPTIER_TRACE_REAL, UPTIER_TRACE_STRING, UPTIER_TRACE_OBJECT };
typedef struct uptier_trace_value {
  uint32_t kind;  // one of the above
  union {
    int64_t integer;
    double real;
    uptier_trace_string string;
    uptier_trace_object object;
  } as;
} uptier_trace_value;

// The arguments and the result of a function call: user data of UPTIER_TRACE_ARGUMENTS.
typedef struct uptier_trace_arguments {
  size_t size;
  const char* function;
  uint32_t count;
  const uptier_trace_value* arguments;  // array of `count` values
  const char* const* names;             // array of `count` names, or NULL
  const uptier_trace_value* result;     // at the end; NULL without one
} uptier_trace_arguments;

// ---- Subscribers ---------------------------------------------------------------------------------

// The argument of a callback. The record and `user_data` are valid during the call; events and the
// stream are valid for ever.
typedef struct uptier_trace_record {
  uint32_t size;
  uptier_trace_type type;
  const uptier_trace_stream* stream;
  const uptier_trace_event* parent;  // or NULL
  const uptier_trace_event* event;   // or NULL
  uint64_t instance;                 // joins a begin with its end; 0 for events "at once"
  const void* user_data;             // its meaning depends on the type
  uint64_t at_ns;                    // when it happened: CLOCK_MONOTONIC, nanoseconds; 0: now
  uint64_t thread;                   // where: the kernel's number of the thread (gettid); 0: here
} uptier_trace_record;

// The time and the thread of an event that is reported later, or by another thread.
typedef struct uptier_trace_when {
  size_t size;
  uint64_t at_ns;   // as in uptier_trace_record
  uint64_t thread;  // likewise
} uptier_trace_when;

// Called on the thread that notifies. It may call every function of the table, and may unsubscribe
// itself.
typedef void (*uptier_trace_callback)(void* user, const uptier_trace_record* record);

// Called once for each stream: those that exist when it is registered, and later ones when they are
// made.
typedef void (*uptier_trace_listener)(void* user, uptier_trace_stream* stream, const char* name,
                                      uint32_t major, uint32_t minor);

// Called for each piece of metadata; returns true (1) to go on.
typedef int (*uptier_trace_visitor)(void* user, uptier_trace_string key,
                                    const uptier_trace_value* value);

// ---- The table -----------------------------------------------------------------------------------

typedef struct uptier_trace_api {
  uint32_t size;     // size of the table, in the dispatcher's version
  uint32_t version;  // UPTIER_TRACE_VERSION

  // Makes a stream, or finds the stream of this name. Never NULL: without a dispatcher it is a
  // stream that nobody listens to. Cost: a lock and a look-up; keep the pointer.
  uptier_trace_stream* (*stream)(const char* name, uint32_t major, uint32_t minor);
  // Returns its name; `major` and `minor` may be NULL.
  const char* (*stream_name)(const uptier_trace_stream* stream, uint32_t* major, uint32_t* minor);

  uptier_trace_string (*string)(const char* text);
  const char* (*string_text)(uptier_trace_string string);  // NULL for no string
  // `kind` says what the bytes mean; tools define the kinds. Equal bytes of two kinds are two
  // objects.
  uptier_trace_object (*object)(const void* bytes, size_t size, uint32_t kind);
  int (*object_bytes)(uptier_trace_object object, const void** bytes, size_t* size, uint32_t* kind);

  // Makes a construct, or finds it and counts another instance of it. Keep the pointer at the trace
  // point: it is valid for the process's life.
  uptier_trace_event* (*event)(const uptier_trace_payload* payload);
  uptier_trace_event* (*event_of_id)(uint64_t id);  // NULL for no event
  uint64_t (*event_id)(const uptier_trace_event* event);
  uint64_t (*event_instances)(const uptier_trace_event* event);
  // Fills in as much of `out` as its `size` has room for; texts are valid for ever.
  int (*event_payload)(const uptier_trace_event* event, uptier_trace_payload* out);
  // Sets one key of an event's metadata; the last value is kept.
  int (*set_metadata)(uptier_trace_event* event, uptier_trace_string key,
                      const uptier_trace_value* value);
  int (*each_metadata)(const uptier_trace_event* event, uptier_trace_visitor visit, void* user);

  // Returns the kind with this name of this tool: the same for the same two names. 0 if all are
  // taken.
  uint32_t (*user_kind)(const char* tool, const char* name);
  const char* (*kind_name)(uint32_t kind);  // "task", "tool.name"; NULL for no kind

  // Tells all subscribers about an event "at once". Takes no lock and allocates nothing, except for
  // UPTIER_TRACE_GRAPH, which is stored.
  void (*notify)(uptier_trace_stream* stream, uptier_trace_type type, uptier_trace_event* parent,
                 uptier_trace_event* event, const void* user_data);
  // Tells subscribers that an activity begins. Returns the instance; pass it to `end`, on any
  // thread.
  uint64_t (*begin)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_event* parent,
                    uptier_trace_event* event, const void* user_data);
  // Tells the subscribers that were told of the begin. Does nothing for instance 0.
  void (*end)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_event* parent,
              uptier_trace_event* event, uint64_t instance, const void* user_data);

  // Registers a callback for a kind: for begins and their ends, or for events "at once". A tool
  // that subscribes during an activity is not told of its end. A callback may be subscribed once
  // for each (stream, kind, user).
  int (*subscribe)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_callback callback,
                   void* user);
  // Removes a subscription; for all streams if `stream` is NULL, for all kinds if `kind` is 0. When
  // it returns, no call is under way on another thread and none will follow, so the callback's
  // library may be unloaded. Returns whether there was such a subscription. To avoid a deadlock, do
  // not call it in a callback A for a callback B if a running call of B may wait for A.
  int (*unsubscribe)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_callback callback,
                     void* user);
  // Registers a listener, and calls it for all streams that exist, on this thread. Returns 0 for NULL.
  // When unlisten returns, no call is under way on another thread.
  int (*listen)(uptier_trace_listener listener, void* user);
  int (*unlisten)(uptier_trace_listener listener, void* user);

  // Writes a line to the log of uptier_trace_init.
  void (*say)(const char* line);

  // The same as notify, begin and end, for an event at another time or on another thread. Tools
  // show it there. `when` may be NULL.
  void (*notify_at)(uptier_trace_stream* stream, uptier_trace_type type, uptier_trace_event* parent,
                    uptier_trace_event* event, const void* user_data,
                    const uptier_trace_when* when);
  uint64_t (*begin_at)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_event* parent,
                       uptier_trace_event* event, const void* user_data,
                       const uptier_trace_when* when);
  void (*end_at)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_event* parent,
                 uptier_trace_event* event, uint64_t instance, const void* user_data,
                 const uptier_trace_when* when);

  // For subscribers: adds events that they were told of and could not keep to the result of
  // uptier_trace_finish.
  void (*lost)(uint64_t events);
} uptier_trace_api;

// ---- The proxy -----------------------------------------------------------------------------------

// Receives a line of the log, without a newline.
typedef void (*uptier_trace_log)(void* user, const char* line);

typedef struct uptier_trace_options {
  size_t size;
  const char* dispatcher;  // absolute path; NULL: UPTIER_TRACE_DISPATCHER
  const char*
      subscribers;  // absolute paths, separated by commas; NULL: none, or if `dispatcher` is NULL, UPTIER_TRACE_SUBSCRIBERS
  uptier_trace_log log;  // NULL: stderr
  void* log_user;
} uptier_trace_options;

// Loads the dispatcher and the subscribers. If the argument or its dispatcher is NULL, this call
// (and no other) reads the environment, through secure_getenv: UPTIER_TRACE=1 turns tracing on,
// UPTIER_TRACE_DISPATCHER and UPTIER_TRACE_SUBSCRIBERS name libraries. Returns whether tracing is
// on. If a library is not loaded, the reason is logged, once.
//
// A library is loaded from an absolute path without links, if it and its folder belong to root or
// to the user and nobody else may write to them.
//
// Call it once, before other threads begin to trace; further calls do nothing and return the same.
int uptier_trace_init(const uptier_trace_options* options);
// Calls the finish functions of the subscribers, the last one first. No thread may notify any more.
// Returns the number of events that are lost: there was no memory for them, or a tool could not write
// them (at least 1 if its file is cut short). 0 if nothing is lost, or tracing is off.
uint64_t uptier_trace_finish(void);

// The table of the dispatcher, or one that does nothing. Never NULL.
extern const uptier_trace_api* uptier_trace;

// The functions that a subscriber's library defines. init returns true (1) if the library wants to
// stay loaded; `arguments` is the text after a '=' that follows its path, or "".
typedef int (*uptier_trace_subscriber_init_fn)(const uptier_trace_api* api, const char* arguments);
typedef void (*uptier_trace_subscriber_finish_fn)(void);
#define UPTIER_TRACE_SUBSCRIBER_INIT "uptier_trace_subscriber_init"
#define UPTIER_TRACE_SUBSCRIBER_FINISH "uptier_trace_subscriber_finish"

// ---- Trace points --------------------------------------------------------------------------------

// Compiled out with -DUPTIER_TRACE_DISABLED: the arguments are not evaluated.
#ifdef UPTIER_TRACE_DISABLED
#define UPTIER_TRACE_ON(stream, type) 0
#else
// True if a tool wants events of a type. Ask once for a pair: begin() and end() keep it whole.
#define UPTIER_TRACE_ON(stream, type) \
  __builtin_expect(__atomic_load_n(&(stream)->enabled[type], __ATOMIC_RELAXED) != 0, 0)
#endif

// Sets one key of an event's metadata: set_metadata of the table. Removed by
// -DUPTIER_TRACE_NO_METADATA, which removes nothing else, and by -DUPTIER_TRACE_DISABLED.
#if defined(UPTIER_TRACE_DISABLED) || defined(UPTIER_TRACE_NO_METADATA)
#define UPTIER_TRACE_SET(event, key, value) (0 ? uptier_trace->set_metadata(event, key, value) : 0)
#else
#define UPTIER_TRACE_SET(event, key, value) (uptier_trace->set_metadata(event, key, value))
#endif

// Reports an event "at once"; the arguments are evaluated only if a tool wants it.
#define UPTIER_TRACE_NOTIFY(stream, kind, parent, event, user_data)                     \
  do {                                                                                  \
    if (UPTIER_TRACE_ON(stream, UPTIER_TRACE_BEGIN(kind))) {                            \
      uptier_trace->notify(stream, UPTIER_TRACE_BEGIN(kind), parent, event, user_data); \
    }                                                                                   \
  } while (0)
// Reports the begin of an activity; its value is the instance for UPTIER_TRACE_LEAVE, 0 if nobody
// wants it.
#define UPTIER_TRACE_ENTER(stream, kind, parent, event, user_data)   \
  (UPTIER_TRACE_ON(stream, UPTIER_TRACE_BEGIN(kind))                 \
       ? uptier_trace->begin(stream, kind, parent, event, user_data) \
       : (uint64_t)0)
// Reports its end.
#define UPTIER_TRACE_LEAVE(stream, kind, parent, event, instance, user_data)             \
  do {                                                                                   \
    const uint64_t uptier_trace_instance_ = (instance);                                  \
    if (__builtin_expect(uptier_trace_instance_ != 0, 0)) {                              \
      uptier_trace->end(stream, kind, parent, event, uptier_trace_instance_, user_data); \
    }                                                                                    \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
