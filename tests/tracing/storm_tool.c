/* A tool that comes and goes: it listens to all streams, and stops the program if it is told of an end
   without its begin, or of anything after it has finished. */
#include <stdlib.h>

#include "uptier/tracing.h"

static const uptier_trace_api* api;
static long open_pairs;
static int finished;

static void on_event(void* user, const uptier_trace_record* record) {
  (void)user;
  if (__atomic_load_n(&finished, __ATOMIC_SEQ_CST)) abort();
  if (record->instance == 0) return;
  const long change = (record->type & 1) ? -1 : 1;
  if (__atomic_add_fetch(&open_pairs, change, __ATOMIC_SEQ_CST) < 0) abort();
}

static void on_stream(void* user, uptier_trace_stream* stream, const char* name, uint32_t major,
                      uint32_t minor) {
  (void)user, (void)name, (void)major, (void)minor;
  api->subscribe(stream, UPTIER_TRACE_FUNCTION, on_event, NULL);
  api->subscribe(stream, UPTIER_TRACE_SIGNAL, on_event, NULL);
}

int uptier_trace_subscriber_init(const uptier_trace_api* table, const char* arguments) {
  (void)arguments;
  api = table;
  return api->listen(on_stream, NULL);
}

void uptier_trace_subscriber_finish(void) {
  api->unlisten(on_stream, NULL);
  api->unsubscribe(NULL, 0, on_event, NULL);
  __atomic_store_n(&finished, 1, __ATOMIC_SEQ_CST);
}
