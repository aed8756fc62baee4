/* A subscriber: counts the tasks of every stream, and says at the end how many there were. */
#include <stdio.h>
#include <uptier/tracing.h>

static const uptier_trace_api* api;
static unsigned long begun, ended;

static void on_task(void* user, const uptier_trace_record* record) {
  (void)user;
  __atomic_fetch_add(record->type & 1 ? &ended : &begun, 1, __ATOMIC_RELAXED);
}

static void on_stream(void* user, uptier_trace_stream* stream, const char* name, uint32_t major,
                      uint32_t minor) {
  (void)name, (void)major, (void)minor;
  api->subscribe(stream, UPTIER_TRACE_TASK, on_task, user);
}

int uptier_trace_subscriber_init(const uptier_trace_api* table, const char* arguments) {
  (void)arguments;
  if (table->version != UPTIER_TRACE_VERSION) return 0;
  api = table;
  return api->listen(on_stream, NULL);
}

void uptier_trace_subscriber_finish(void) {
  char line[80];
  api->unlisten(on_stream, NULL);
  api->unsubscribe(NULL, 0, on_task, NULL); /* no call comes after this */
  snprintf(line, sizeof line, "%lu tasks have begun, %lu have ended", begun, ended);
  api->say(line);
}
