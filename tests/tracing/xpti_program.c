/* A program with one event of each kind that the bridge treats in its own way. Exit code 0: nothing
   is lost. */
#include <stddef.h>

#include "uptier/tracing.h"

static uptier_trace_event* construct(const char* name, const char* file, uint32_t line) {
  const uptier_trace_payload p = {.size = sizeof p, .name = name, .file = file, .line = line};
  return uptier_trace->event(&p);
}

int main(void) {
  uptier_trace_init(NULL);
  uptier_trace_stream* s = uptier_trace->stream("machine", 3, 1);
  uptier_trace_event* graph = construct("plan", NULL, 0);
  uptier_trace_event* placed = construct("step", "guest.src", 7);
  uptier_trace_event* twins[2] = {construct("twin", NULL, 0), construct("twin", NULL, 0)};
  const uptier_trace_value size = {UPTIER_TRACE_INT, {.integer = -7}};
  uptier_trace_value tier = {UPTIER_TRACE_STRING,
                             {.string = uptier_trace->string("a \"fast\" one")}};
  uptier_trace->set_metadata(placed, uptier_trace->string("size"), &size);
  uptier_trace->set_metadata(placed, uptier_trace->string("tier"), &tier);
  UPTIER_TRACE_NOTIFY(s, UPTIER_TRACE_GRAPH, NULL, graph, NULL);
  for (int i = 0; i < 2; ++i) {
    const uint64_t task = UPTIER_TRACE_ENTER(s, UPTIER_TRACE_TASK, graph, placed, NULL);
    UPTIER_TRACE_LEAVE(s, UPTIER_TRACE_TASK, graph, placed, task, NULL);
  }
  UPTIER_TRACE_NOTIFY(s, UPTIER_TRACE_SIGNAL, NULL, twins[0], NULL);
  UPTIER_TRACE_NOTIFY(s, UPTIER_TRACE_SIGNAL, NULL, twins[1], NULL);
  const uint64_t call = UPTIER_TRACE_ENTER(s, UPTIER_TRACE_FUNCTION, NULL, NULL, "called");
  UPTIER_TRACE_LEAVE(s, UPTIER_TRACE_FUNCTION, NULL, NULL, call, NULL);
  const uptier_trace_value seven = {UPTIER_TRACE_INT, {.integer = 7}};
  uptier_trace_arguments a = {
      .size = sizeof a, .function = "open", .count = 1, .arguments = &seven};
  const uint64_t open = UPTIER_TRACE_ENTER(s, UPTIER_TRACE_ARGUMENTS, NULL, NULL, &a);
  a.result = &seven;
  UPTIER_TRACE_LEAVE(s, UPTIER_TRACE_ARGUMENTS, NULL, NULL, open, &a);
  const uint32_t kinds[] = {uptier_trace->user_kind("db", "query"),
                            uptier_trace->user_kind("db", "commit"),
                            uptier_trace->user_kind("net", "send")};
  for (int i = 0; i < 3; ++i) {
    if (kinds[i] == 0) continue;
    const uint64_t pair = UPTIER_TRACE_ENTER(s, kinds[i], NULL, placed, NULL);
    UPTIER_TRACE_LEAVE(s, kinds[i], NULL, placed, pair, NULL);
  }
  return uptier_trace_finish() == 0 ? 0 : 1;
}
