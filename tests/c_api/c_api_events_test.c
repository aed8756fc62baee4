// The part of c_api_events_test.cc that must be C: subscribers that count what they receive.
#include "uptier/uptier.h"

typedef struct c_counts {
  uptier_runtime* runtime;
  uptier_subscription self;
  int end_after;  // ends its own subscription after so many records; 0: never
  int records, compiled, installed, gaps, ended;
  uint64_t last;
  int left, evicted, lost_records;
  uint64_t lost, parts, keys;
} c_counts;

static void count(void* user, const uptier_event* e) {
  c_counts* c = user;
  ++c->records;
  if (e->thread_sequence == 0) {
    c->gaps += c->last != 0 && e->sequence != c->last + 1;
    c->last = e->sequence;
  }
  c->keys += e->kind == UPTIER_EVENT_ADDED && e->module_key != 0;
  c->ended += e->kind == UPTIER_EVENT_ENDED;
  if (c->records == c->end_after) (void)uptier_runtime_unsubscribe(c->runtime, c->self, NULL);
}

static void count_compiled(void* user, const uptier_event* e) {
  ((c_counts*)user)->compiled += e->kind == UPTIER_EVENT_COMPILED && e->version != 0;
  for (size_t i = 0; i < e->phase_count; ++i) ((c_counts*)user)->parts += e->phases[i].name[0] != 0;
}

static void count_installed(void* user, const uptier_event* e) {
  ((c_counts*)user)->installed += e->kind == UPTIER_EVENT_INSTALLED && e->bytes != 0;
}

static void count_left(void* user, const uptier_event* e) {
  ((c_counts*)user)->left += e->kind == UPTIER_EVENT_LEFT && e->thread_sequence != 0;
}

static void count_evicted(void* user, const uptier_event* e) {
  ((c_counts*)user)->evicted += e->kind == UPTIER_EVENT_EVICTED && e->method.id != 0;
}

static void count_lost(void* user, const uptier_event* e) {
  c_counts* c = user;
  c->lost_records += e->kind == UPTIER_EVENT_LOST;
  c->lost += e->count;
}

uptier_status c_subscribe(c_counts* c, uptier_error* error) {
  const uptier_subscriber s = {sizeof s, c, count, 0};
  return uptier_runtime_subscribe(c->runtime, &s, &c->self, &c->last, error);
}

uptier_status c_subscribe_code(c_counts* c, uptier_error* error) {
  const uptier_code_events s = {
      sizeof s, c, count_compiled, count_installed, count_left, count_evicted, count_lost};
  return uptier_runtime_subscribe_code(c->runtime, &s, &c->self, NULL, error);
}
