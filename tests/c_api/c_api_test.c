// The part of c_api_test.cc that must be C: a C compiler reads the header, and C code describes
// bodies.
#include <stdlib.h>
#include <string.h>

#include "uptier/uptier.h"

// The enumerations as the C compiler sees them, by row; the C++ part compares them.
const uint32_t c_opcodes[] = {
#define X(id, name, text, shape, types, effects) UPTIER_OP_##name,
    UPTIER_OPCODES(X)
#undef X
};
const uint32_t c_traps[] = {
#define X(id, name, text) UPTIER_TRAP_##name,
    UPTIER_TRAPS(X)
#undef X
};
const uint32_t c_guard_reasons[] = {
#define X(id, name, text) UPTIER_GUARD_##name,
    UPTIER_GUARD_REASONS(X)
#undef X
};
const uint32_t c_probe_kinds[] = {
    UPTIER_PROBE_CALL_TARGET, UPTIER_PROBE_VALUE, UPTIER_PROBE_LOG,   UPTIER_PROBE_COUNTER,
    UPTIER_PROBE_HIT,         UPTIER_PROBE_GAUGE, UPTIER_PROBE_RANGE, 0,
};
// Sizes and offsets of structs that cross the API in memory.
const size_t c_layout[] = {
    sizeof(uptier_error),
    offsetof(uptier_error, message),
    sizeof(uptier_signature),
    sizeof(uptier_host),
    offsetof(uptier_host, drop),
    offsetof(uptier_host, positions),
    sizeof(uptier_method_info),
    offsetof(uptier_method_info, host_entry),
    offsetof(uptier_method_info, host_may_trap),
    sizeof(uptier_outcome),
    offsetof(uptier_outcome, method),
    sizeof(uptier_method_totals),
    offsetof(uptier_method_totals, tier),
    sizeof(uptier_totals),
    offsetof(uptier_totals, evictions),
    sizeof(uptier_trace_sink),
    sizeof(uptier_host_frame),
    sizeof(uptier_log_record),
    sizeof(uptier_profile_answer),
    sizeof(uptier_profile_entry),
    sizeof(uptier_address),
    offsetof(uptier_address, flags),
    sizeof(uptier_event),
    offsetof(uptier_event, version),
    offsetof(uptier_event, text),
    sizeof(uptier_subscription),
    sizeof(uptier_subscriber),
    offsetof(uptier_subscriber, kinds),
    sizeof(uptier_code_events),
    offsetof(uptier_code_events, lost),
    sizeof(uptier_place),
    sizeof(uptier_place_frame),
    sizeof(uptier_position),
    sizeof(uptier_data),
    sizeof(uptier_piece),
    sizeof(uptier_gathered_instrument),
    sizeof(uptier_data_source),
    sizeof(uptier_gather_report),
    sizeof(uptier_log_format),
};

// gcd(a, b): while (b != 0) { t = a % b; a = b; b = t; } return a;
static uptier_status build_gcd(void* user, uptier_method method, uptier_builder* b,
                               uptier_error* error) {
  (void)method, (void)error;
  ++*(int*)user;
  uptier_variable x = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_variable y = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_build_def(b, x, uptier_build_param(b, 0));
  uptier_build_def(b, y, uptier_build_param(b, 1));
  uptier_block head = uptier_build_create_block(b);
  uptier_block body = uptier_build_create_block(b);
  uptier_block done = uptier_build_create_block(b);
  uptier_build_jump(b, head);

  uptier_build_switch_to(b, head);
  uptier_build_loop_header(b, 0, NULL, 0);
  uptier_value stop = uptier_build_unary(b, UPTIER_OP_EQZ, uptier_build_use(b, y));
  uptier_build_branch(b, stop, done, body);
  uptier_build_seal(b, body);
  uptier_build_seal(b, done);

  uptier_build_switch_to(b, body);
  uptier_value old = uptier_build_use(b, y);
  uptier_value rest = uptier_build_binary(b, UPTIER_OP_REM_U, uptier_build_use(b, x), old);
  uptier_build_def(b, x, old);
  uptier_build_def(b, y, rest);
  uptier_build_jump(b, head);
  uptier_build_seal(b, head);

  uptier_build_switch_to(b, done);
  return uptier_build_ret(b, uptier_build_use(b, x));
}

// Registers gcd; counts its builds in `*builds`.
uptier_status c_add_gcd(uptier_runtime* runtime, int* builds, uptier_method* out,
                        uptier_error* error) {
  const uptier_host host = {sizeof host, build_gcd, NULL, NULL};
  const uptier_type params[] = {UPTIER_TYPE_I64, UPTIER_TYPE_I64};
  uptier_method_info info = {.size = sizeof info, .name = "gcd", .host = &host, .user = builds};
  info.signature = (uptier_signature){params, 2, UPTIER_TYPE_I64};
  return uptier_runtime_add_method(runtime, &info, out, error);
}

// Calls an entry of gcd's type through its plain C pointer.
int64_t c_call_gcd(uptier_code entry, int64_t a, int64_t b) {
  int64_t (*gcd)(int64_t, int64_t) = (int64_t(*)(int64_t, int64_t))entry;
  return gcd(a, b);
}

// Returns the report, which the caller must free. Uses the loop that uptier.h asks for, since the
// text may grow.
char* c_report(const uptier_runtime* runtime) {
  char* text = NULL;
  size_t capacity = 0, length = 0;
  do {
    capacity = length + 1;
    free(text);
    text = malloc(capacity);
    if (text == NULL) return NULL;
    if (uptier_runtime_report_text(runtime, 0, text, capacity, &length, NULL) != UPTIER_OK) break;
  } while (length >= capacity);
  return text;
}
