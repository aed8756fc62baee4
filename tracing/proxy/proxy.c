/* The proxy: instrumented programs link it. Until a dispatcher is loaded, its functions do nothing
   and return values that say so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracing/proxy/dispatcher_entry.h"
#include "tracing/proxy/safe_load.h"
#include "uptier/tracing.h"

/* ---- The table that does nothing ---- */

static uptier_trace_stream nobody; /* it has no subscribers, and is never written to */

static uptier_trace_stream* no_stream(const char* name, uint32_t major, uint32_t minor) {
  (void)name, (void)major, (void)minor;
  return &nobody;
}
static const char* no_stream_name(const uptier_trace_stream* s, uint32_t* major, uint32_t* minor) {
  (void)s;
  if (major != NULL) *major = 0;
  if (minor != NULL) *minor = 0;
  return "";
}
static uptier_trace_string no_string(const char* text) { return (void)text, 0; }
static const char* no_string_text(uptier_trace_string s) { return (void)s, NULL; }
static uptier_trace_object no_object(const void* bytes, size_t size, uint32_t kind) {
  return (void)bytes, (void)size, (void)kind, 0;
}
static int no_object_bytes(uptier_trace_object o, const void** bytes, size_t* size,
                           uint32_t* kind) {
  return (void)o, (void)bytes, (void)size, (void)kind, 0;
}
static uptier_trace_event* no_event(const uptier_trace_payload* p) { return (void)p, NULL; }
static uptier_trace_event* no_event_of_id(uint64_t id) { return (void)id, NULL; }
static uint64_t no_event_number(const uptier_trace_event* e) { return (void)e, 0; }
static int no_event_payload(const uptier_trace_event* e, uptier_trace_payload* out) {
  return (void)e, (void)out, 0;
}
static int no_set_metadata(uptier_trace_event* e, uptier_trace_string key,
                           const uptier_trace_value* value) {
  return (void)e, (void)key, (void)value, 0;
}
static int no_each_metadata(const uptier_trace_event* e, uptier_trace_visitor v, void* user) {
  return (void)e, (void)v, (void)user, 0;
}
static uint32_t no_user_kind(const char* tool, const char* name) {
  return (void)tool, (void)name, 0;
}
static const char* no_kind_name(uint32_t kind) { return (void)kind, NULL; }
static void no_notify(uptier_trace_stream* s, uptier_trace_type t, uptier_trace_event* parent,
                      uptier_trace_event* e, const void* data) {
  (void)s, (void)t, (void)parent, (void)e, (void)data;
}
static uint64_t no_begin(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
                         uptier_trace_event* e, const void* data) {
  return (void)s, (void)kind, (void)parent, (void)e, (void)data, 0;
}
static void no_end(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
                   uptier_trace_event* e, uint64_t instance, const void* data) {
  (void)s, (void)kind, (void)parent, (void)e, (void)instance, (void)data;
}
static int no_subscribe(uptier_trace_stream* s, uint32_t kind, uptier_trace_callback f,
                        void* user) {
  return (void)s, (void)kind, (void)f, (void)user, 0;
}
static int no_listen(uptier_trace_listener f, void* user) { return (void)f, (void)user, 0; }
static void no_notify_at(uptier_trace_stream* s, uptier_trace_type t, uptier_trace_event* parent,
                         uptier_trace_event* e, const void* data, const uptier_trace_when* when) {
  (void)s, (void)t, (void)parent, (void)e, (void)data, (void)when;
}
static uint64_t no_begin_at(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
                            uptier_trace_event* e, const void* data,
                            const uptier_trace_when* when) {
  return (void)s, (void)kind, (void)parent, (void)e, (void)data, (void)when, 0;
}
static void no_end_at(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
                      uptier_trace_event* e, uint64_t instance, const void* data,
                      const uptier_trace_when* when) {
  (void)s, (void)kind, (void)parent, (void)e, (void)instance, (void)data, (void)when;
}
static void no_say(const char* line) { (void)line; }
static void no_lost(uint64_t events) { (void)events; }

static const uptier_trace_api no_api = {
    .size = sizeof(uptier_trace_api),
    .version = UPTIER_TRACE_VERSION,
    .stream = no_stream,
    .stream_name = no_stream_name,
    .string = no_string,
    .string_text = no_string_text,
    .object = no_object,
    .object_bytes = no_object_bytes,
    .event = no_event,
    .event_of_id = no_event_of_id,
    .event_id = no_event_number,
    .event_instances = no_event_number,
    .event_payload = no_event_payload,
    .set_metadata = no_set_metadata,
    .each_metadata = no_each_metadata,
    .user_kind = no_user_kind,
    .kind_name = no_kind_name,
    .notify = no_notify,
    .begin = no_begin,
    .end = no_end,
    .subscribe = no_subscribe,
    .unsubscribe = no_subscribe,
    .listen = no_listen,
    .unlisten = no_listen,
    .say = no_say,
    .notify_at = no_notify_at,
    .begin_at = no_begin_at,
    .end_at = no_end_at,
    .lost = no_lost,
};

const uptier_trace_api* uptier_trace = &no_api;

/* ---- Loading ---- */

static uptier_trace_log log_function;
static void* log_user;
static int was_initialized;
static uptier_trace_dispatcher_finish_fn finish_dispatcher;

static void say(const char* line) {
  if (log_function != NULL) {
    log_function(log_user, line);
  } else {
    fprintf(stderr, "uptier trace: %s\n", line);
  }
}
static void say_of(const char* path, const char* why) {
  char line[4500];
  snprintf(line, sizeof line, "%s is not loaded: %s", path, why);
  say(line);
}

/* Returns the dispatcher's path, or NULL if tracing is off. */
static const char* wanted_dispatcher(const uptier_trace_options* o) {
  if (o != NULL && o->dispatcher != NULL) return o->dispatcher;
  const char* on = secure_getenv("UPTIER_TRACE");
  if (on == NULL || strcmp(on, "1") != 0) return NULL;
  const char* path = secure_getenv("UPTIER_TRACE_DISPATCHER");
  if (path == NULL) say("UPTIER_TRACE=1, but UPTIER_TRACE_DISPATCHER names no dispatcher");
  return path;
}

int uptier_trace_init(const uptier_trace_options* given) {
  if (was_initialized) return uptier_trace != &no_api;
  was_initialized = 1;
  uptier_trace_options o = {0};
  if (given != NULL) memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
  log_function = o.log;
  log_user = o.log_user;
  const char* path = wanted_dispatcher(given != NULL ? &o : NULL);
  if (path == NULL) return 0;
  char why[4200];
  void* library = uptier_trace_safe_load(path, why, sizeof why);
  if (library == NULL) return say_of(path, why), 0;
  uptier_trace_dispatcher_init_fn init =
      (uptier_trace_dispatcher_init_fn)dlsym(library, UPTIER_TRACE_DISPATCHER_INIT);
  finish_dispatcher =
      (uptier_trace_dispatcher_finish_fn)dlsym(library, UPTIER_TRACE_DISPATCHER_FINISH);
  if (init == NULL || finish_dispatcher == NULL) {
    say_of(path, "it is no dispatcher: " UPTIER_TRACE_DISPATCHER_INIT
                 " or " UPTIER_TRACE_DISPATCHER_FINISH " is missing");
    dlclose(library);
    return 0;
  }
  const char* subscribers = o.subscribers;
  if (subscribers == NULL && o.dispatcher == NULL) {
    subscribers = secure_getenv("UPTIER_TRACE_SUBSCRIBERS");
  }
  const uptier_trace_dispatcher_options options = {
      .size = sizeof options,
      .version = UPTIER_TRACE_VERSION,
      .log = say,
      .load = uptier_trace_safe_load,
  };
  const uptier_trace_api* api = init(&options);
  if (api == NULL || api->version != UPTIER_TRACE_VERSION || api->size < sizeof *api) {
    say_of(path, "it has another version of the interface than the program");
    dlclose(library);
    return 0;
  }
  uptier_trace = api;
  uptier_trace_dispatcher_load_fn load =
      (uptier_trace_dispatcher_load_fn)dlsym(library, UPTIER_TRACE_DISPATCHER_LOAD);
  if (load != NULL && subscribers != NULL) load(subscribers);
  return 1;
}

uint64_t uptier_trace_finish(void) { return uptier_trace != &no_api ? finish_dispatcher() : 0; }
