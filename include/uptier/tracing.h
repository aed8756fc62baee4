// tracing.h: tells tools what a program does, as a stream of typed events. C99; needs nothing else of
// Uptier.
//
//   program --uptier_trace_init--> proxy (static library) --loads--> dispatcher --loads--> subscribers
//      |                                                                 ^  |
//      +-- a trace point: one test; if a tool wants it: notify ----------+  +-- callbacks, on the same thread
//
// A program links the proxy alone (libuptier_trace.a). Until uptier_trace_init has loaded a
// dispatcher, every function of the table is there and does nothing, and each trace point costs one
// load and one branch that is never taken.
//
// Nothing but the table of functions crosses between program, dispatcher and subscribers. Each
// struct that begins with `size` may get more members at its end; whoever fills one sets `size` to
// its own sizeof.
//
// Threads: all functions may be called on any thread at any time, also by callbacks, but for
// uptier_trace_init and uptier_trace_finish. Nothing here is safe in a signal handler.
// Errors: functions that return a pointer or an id return NULL or 0, functions that return int
// return 0 (false) for what was refused: memory, or arguments that mean nothing.
#ifndef UPTIER_TRACING_H
#define UPTIER_TRACING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { UPTIER_TRACE_VERSION = 1 };

// ---- Types --------------------------------------------------------------------------------------

// What happened. A kind is a number below UPTIER_TRACE_KINDS; kinds that last have two types, the
// begin and the end.
typedef uint16_t uptier_trace_type;
#define UPTIER_TRACE_BEGIN(kind) ((uptier_trace_type)((kind) << 1))
#define UPTIER_TRACE_END(kind) ((uptier_trace_type)(((kind) << 1) | 1))

enum {
  UPTIER_TRACE_GRAPH =
      1,                // at once: the graph that nodes and edges belong to; replayed to late tools
  UPTIER_TRACE_NODE,    // at once: a node came into being; `parent` is its graph
  UPTIER_TRACE_EDGE,    // at once: `event` depends on `parent`; user data: its name, or NULL
  UPTIER_TRACE_REGION,  // lasts
  UPTIER_TRACE_TASK,    // lasts: one execution of a node
  UPTIER_TRACE_BARRIER,    // lasts
  UPTIER_TRACE_LOCK,       // lasts
  UPTIER_TRACE_SIGNAL,     // at once
  UPTIER_TRACE_TRANSFER,   // lasts
  UPTIER_TRACE_THREAD,     // lasts; user data: the thread's name, or NULL
  UPTIER_TRACE_WAIT,       // lasts
  UPTIER_TRACE_FUNCTION,   // lasts; user data of the begin: a text, or NULL
  UPTIER_TRACE_METADATA,   // at once: metadata of `event` changed; has a guard of its own
  UPTIER_TRACE_ARGUMENTS,  // lasts; user data: uptier_trace_arguments
  UPTIER_TRACE_FIRST_USER_KIND = 64,  // from here on: user_kind()
  UPTIER_TRACE_KINDS = 256,
  UPTIER_TRACE_TYPES = 512,
};

// ---- Streams, strings, objects -------------------------------------------------------------------

// A source of events that tools choose by name. `enabled` is written by the dispatcher: entry t is
// not 0 while a tool wants events of type t. Trace points only read it.
typedef struct uptier_trace_stream {
  uint8_t enabled[UPTIER_TRACE_TYPES];
} uptier_trace_stream;

// Ids of strings and objects: for ever the same, and equal for equal contents. 0 is none.
typedef uint32_t uptier_trace_string;
typedef uint32_t uptier_trace_object;

// ---- Constructs ----------------------------------------------------------------------------------

// Where a construct of the program, or of a guest that it runs, is. Texts may be NULL; `line` and
// `column` are 0 where they are not known. Constructs with a file or function are the same if file,
// function, line and column are; others are never the same.
typedef struct uptier_trace_payload {
  size_t size;
  const char* name;  // for people
  const char* file;
  const char* function;
  uint32_t line;
  uint32_t column;
  const void* address;  // of its code, or NULL
} uptier_trace_payload;

// A construct that the dispatcher knows. `id` is never 0, and no two constructs of a process share
// one; `instances` counts how often event() has been asked for it.
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

// What a function was called with, and has returned: user data of UPTIER_TRACE_ARGUMENTS.
typedef struct uptier_trace_arguments {
  size_t size;
  const char* function;
  uint32_t count;
  const uptier_trace_value* arguments;  // `count` of them
  const char* const* names;             // `count` of them, or NULL
  const uptier_trace_value* result;     // with the end; NULL without one
} uptier_trace_arguments;

// ---- Subscribers ---------------------------------------------------------------------------------

// What a callback receives. Valid during the call, as is `user_data`; events and the stream live for
// ever.
typedef struct uptier_trace_record {
  uint32_t size;
  uptier_trace_type type;
  const uptier_trace_stream* stream;
  const uptier_trace_event* parent;  // or NULL
  const uptier_trace_event* event;   // or NULL
  uint64_t instance;                 // joins a begin with its end; 0 for what happens at once
  const void* user_data;             // as its type says
  uint64_t at_ns;                    // when it happened: CLOCK_MONOTONIC, nanoseconds; 0: now
  uint64_t thread;                   // where: the kernel's number of the thread (gettid); 0: here
} uptier_trace_record;

// When and where something happened that is told of later, or on another thread.
typedef struct uptier_trace_when {
  size_t size;
  uint64_t at_ns;   // as in uptier_trace_record
  uint64_t thread;  // likewise
} uptier_trace_when;

// Is called on the thread that notifies. It may call every function of the table, and may
// unsubscribe itself.
typedef void (*uptier_trace_callback)(void* user, const uptier_trace_record* record);

// Is told of each stream, once: those that exist when it begins to listen, and those that come.
typedef void (*uptier_trace_listener)(void* user, uptier_trace_stream* stream, const char* name,
                                      uint32_t major, uint32_t minor);

// Visits metadata; returns whether it wants more.
typedef int (*uptier_trace_visitor)(void* user, uptier_trace_string key,
                                    const uptier_trace_value* value);

// ---- The table -----------------------------------------------------------------------------------

typedef struct uptier_trace_api {
  uint32_t size;     // of the table, as the dispatcher has it
  uint32_t version;  // UPTIER_TRACE_VERSION

  // Makes a stream, or finds the one of this name. Never NULL: without a dispatcher it is one that
  // nobody listens to. Cost: a lock and a look-up; keep the pointer.
  uptier_trace_stream* (*stream)(const char* name, uint32_t major, uint32_t minor);
  // Returns its name; `major` and `minor` may be NULL.
  const char* (*stream_name)(const uptier_trace_stream* stream, uint32_t* major, uint32_t* minor);

  uptier_trace_string (*string)(const char* text);
  const char* (*string_text)(uptier_trace_string string);  // NULL for no string
  // `kind` says what the bytes are, as the tool defines it; equal bytes of two kinds are two objects.
  uptier_trace_object (*object)(const void* bytes, size_t size, uint32_t kind);
  int (*object_bytes)(uptier_trace_object object, const void** bytes, size_t* size, uint32_t* kind);

  // Makes a construct, or finds it and counts another instance of it. Keep the pointer at the trace
  // point: it is good for the process's life.
  uptier_trace_event* (*event)(const uptier_trace_payload* payload);
  uptier_trace_event* (*event_of_id)(uint64_t id);  // NULL for no event
  uint64_t (*event_id)(const uptier_trace_event* event);
  uint64_t (*event_instances)(const uptier_trace_event* event);
  // Fills in as much of `out` as its `size` has room for; texts live for ever.
  int (*event_payload)(const uptier_trace_event* event, uptier_trace_payload* out);
  // Sets one key of an event's metadata; the last value stays.
  int (*set_metadata)(uptier_trace_event* event, uptier_trace_string key,
                      const uptier_trace_value* value);
  int (*each_metadata)(const uptier_trace_event* event, uptier_trace_visitor visit, void* user);

  // Returns the kind of this name of a tool's: the same for the same two names. 0 when all are taken.
  uint32_t (*user_kind)(const char* tool, const char* name);
  const char* (*kind_name)(uint32_t kind);  // "task", "tool.name"; NULL for no kind

  // Tells all subscribers that something happened at once. Takes no lock and allocates nothing, but
  // for UPTIER_TRACE_GRAPH, which is kept.
  void (*notify)(uptier_trace_stream* stream, uptier_trace_type type, uptier_trace_event* parent,
                 uptier_trace_event* event, const void* user_data);
  // Tells them that something begins. Returns the instance, which the end is given, on any thread.
  uint64_t (*begin)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_event* parent,
                    uptier_trace_event* event, const void* user_data);
  // Tells those who were told of the begin. Nothing for the instance 0.
  void (*end)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_event* parent,
              uptier_trace_event* event, uint64_t instance, const void* user_data);

  // Has a callback told of a kind: of its begins and of their ends, or of what happens at once. A
  // tool that comes while something lasts is not told of its end. A callback may be subscribed once
  // for each (stream, kind, user).
  int (*subscribe)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_callback callback,
                   void* user);
  // Ends that; of all streams where `stream` is NULL, of all kinds where `kind` is 0. When it returns
  // no call is under way on another thread and none will come, so that the callback's library may be
  // unloaded. Returns whether there was such a subscription. Not from a callback of another subscriber that the same
  // tool waits for.
  int (*unsubscribe)(uptier_trace_stream* stream, uint32_t kind, uptier_trace_callback callback,
                     void* user);
  int (*listen)(uptier_trace_listener listener, void* user);
  int (*unlisten)(uptier_trace_listener listener, void* user);

  // Says something to whoever receives the log of uptier_trace_init.
  void (*say)(const char* line);

  // The same as notify, begin and end for what happened at another time or on another thread. Tools
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
} uptier_trace_api;

// ---- The proxy -----------------------------------------------------------------------------------

// Receives a line of the log, without a newline.
typedef void (*uptier_trace_log)(void* user, const char* line);

typedef struct uptier_trace_options {
  size_t size;
  const char* dispatcher;   // absolute path; NULL: UPTIER_TRACE_DISPATCHER
  const char* subscribers;  // absolute paths, with commas between; NULL: UPTIER_TRACE_SUBSCRIBERS
  uptier_trace_log log;     // NULL: stderr
  void* log_user;
} uptier_trace_options;

// Loads the dispatcher and the subscribers. With NULL, or a dispatcher that is NULL, it reads the
// environment (through secure_getenv), and only here: UPTIER_TRACE=1 turns tracing on,
// UPTIER_TRACE_DISPATCHER and UPTIER_TRACE_SUBSCRIBERS name libraries. Returns whether tracing is
// on. What is not loaded is logged with the reason, once.
//
// A library is loaded from an absolute path without links, if it and its folder belong to root or to
// the user and nobody else may write to them.
//
// Call it once, before other threads begin to trace; again it does nothing and returns the same.
int uptier_trace_init(const uptier_trace_options* options);
// Calls the finish functions of the subscribers, the last one first. No thread may notify any more.
void uptier_trace_finish(void);

// The table: the dispatcher's, or one that does nothing. Never NULL.
extern const uptier_trace_api* uptier_trace;

// What a subscriber's library defines. init returns whether it wants to be loaded; `arguments` is
// what follows a '=' behind its path, or "".
typedef int (*uptier_trace_subscriber_init_fn)(const uptier_trace_api* api, const char* arguments);
typedef void (*uptier_trace_subscriber_finish_fn)(void);
#define UPTIER_TRACE_SUBSCRIBER_INIT "uptier_trace_subscriber_init"
#define UPTIER_TRACE_SUBSCRIBER_FINISH "uptier_trace_subscriber_finish"

// ---- Trace points --------------------------------------------------------------------------------

// Compiled out with -DUPTIER_TRACE_DISABLED: the arguments are not evaluated.
#ifdef UPTIER_TRACE_DISABLED
#define UPTIER_TRACE_ON(stream, type) 0
#else
// Whether a tool wants events of a type. Ask once for a pair: begin() and end() keep it whole.
#define UPTIER_TRACE_ON(stream, type) \
  __builtin_expect(__atomic_load_n(&(stream)->enabled[type], __ATOMIC_RELAXED) != 0, 0)
#endif

// Tells that something happened at once; arguments are evaluated only if a tool wants to know.
#define UPTIER_TRACE_NOTIFY(stream, kind, parent, event, user_data)                     \
  do {                                                                                  \
    if (UPTIER_TRACE_ON(stream, UPTIER_TRACE_BEGIN(kind))) {                            \
      uptier_trace->notify(stream, UPTIER_TRACE_BEGIN(kind), parent, event, user_data); \
    }                                                                                   \
  } while (0)
// The begin of what lasts; its value is the instance for UPTIER_TRACE_LEAVE, 0 if nobody wants it.
#define UPTIER_TRACE_ENTER(stream, kind, parent, event, user_data)   \
  (UPTIER_TRACE_ON(stream, UPTIER_TRACE_BEGIN(kind))                 \
       ? uptier_trace->begin(stream, kind, parent, event, user_data) \
       : (uint64_t)0)
// Its end.
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
