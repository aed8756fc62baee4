/* dispatcher_entry.h: the functions of a dispatcher's library, and the options from the proxy. */
#ifndef UPTIER_TRACING_DISPATCHER_ENTRY_H
#define UPTIER_TRACING_DISPATCHER_ENTRY_H

#include "uptier/tracing.h"

typedef struct uptier_trace_dispatcher_options {
  size_t size;
  uint32_t version; /* of the program's tracing.h */
  void (*log)(const char* line);
  void* (*load)(const char* path, char* why, size_t size); /* safe_load.h */
} uptier_trace_dispatcher_options;

/* Returns the table, or NULL if it cannot serve this version. Called once. */
typedef const uptier_trace_api* (*uptier_trace_dispatcher_init_fn)(
    const uptier_trace_dispatcher_options* options);
/* Loads subscribers: absolute paths, separated by commas, each optionally followed by
   "=ARGUMENTS". */
typedef void (*uptier_trace_dispatcher_load_fn)(const char* subscribers);
/* Calls their finish functions, the last one first. Returns the number of lost events. */
typedef uint64_t (*uptier_trace_dispatcher_finish_fn)(void);

#define UPTIER_TRACE_DISPATCHER_INIT "uptier_trace_dispatcher_init"
#define UPTIER_TRACE_DISPATCHER_LOAD "uptier_trace_dispatcher_load"
#define UPTIER_TRACE_DISPATCHER_FINISH "uptier_trace_dispatcher_finish"

#endif
