/* A machine that runs a little program of its own, and tells tools about it. */
#include <stdio.h>
#include <uptier/tracing.h>

static uptier_trace_stream* stream;

/* One operation: a task of the node that stands for its place in the guest's source. */
static long step(uptier_trace_event* place, long value) {
  const uint64_t task = UPTIER_TRACE_ENTER(stream, UPTIER_TRACE_TASK, NULL, place, NULL);
  value = value * 3 + 1;
  UPTIER_TRACE_LEAVE(stream, UPTIER_TRACE_TASK, NULL, place, task, NULL);
  return value;
}

int main(void) {
  uptier_trace_init(NULL); /* UPTIER_TRACE=1 and two paths turn it on */
  stream = uptier_trace->stream("machine", 1, 0);
  const uptier_trace_payload program = {
      .size = sizeof program, .name = "program", .file = "guest.src"};
  uptier_trace_event* graph = uptier_trace->event(&program);
  UPTIER_TRACE_NOTIFY(stream, UPTIER_TRACE_GRAPH, NULL, graph, NULL);
  uptier_trace_event* places[3];
  for (unsigned i = 0; i < 3; ++i) {
    const uptier_trace_payload place = {
        .size = sizeof place, .name = "step", .file = "guest.src", .line = i + 1};
    places[i] = uptier_trace->event(&place);
    UPTIER_TRACE_NOTIFY(stream, UPTIER_TRACE_NODE, graph, places[i], NULL);
  }
  long value = 1;
  for (int round = 0; round < 4; ++round)
    for (int i = 0; i < 3; ++i) value = step(places[i], value);
  printf("%ld\n", value);
  return uptier_trace_finish() == 0 ? 0 : 1; /* not 0: events are lost */
}
