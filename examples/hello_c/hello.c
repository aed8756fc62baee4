// The smallest embedding from C: one method, described by a builder, called until it is optimized.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "uptier/uptier.h"

// Describes `sum(n) = 1 + 2 + ... + n`. No status is looked at: the builder remembers the first
// error, and the build fails with it.
static uptier_status build_sum(void* user, uptier_method method, uptier_builder* b,
                               uptier_error* error) {
  (void)user, (void)method, (void)error;
  uptier_variable i = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_variable total = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_build_def(b, i, uptier_build_i64(b, 0));
  uptier_build_def(b, total, uptier_build_i64(b, 0));
  uptier_block loop = uptier_build_create_block(b);
  uptier_block done = uptier_build_create_block(b);
  uptier_build_jump(b, loop);

  uptier_build_switch_to(b, loop);
  uptier_build_loop_header(b, 0, NULL, 0);  // the runtime may change copies and tiers here
  uptier_value next =
      uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, i), uptier_build_i64(b, 1));
  uptier_build_def(b, i, next);
  uptier_build_def(b, total,
                   uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, total), next));
  uptier_build_branch(b, uptier_build_binary(b, UPTIER_OP_LT_U, next, uptier_build_param(b, 0)),
                      loop, done);
  uptier_build_seal(b, loop);
  uptier_build_seal(b, done);

  uptier_build_switch_to(b, done);
  uptier_build_ret(b, uptier_build_use(b, total));
  return UPTIER_OK;
}

static void check(uptier_status status, const uptier_error* error) {
  if (status == UPTIER_OK) return;
  fprintf(stderr, "%s: %s\n", uptier_status_name(status), error->message);
  exit(1);
}

static void print_report(const uptier_runtime* runtime) {
  uptier_error error;
  static char text[1 << 14];
  check(uptier_runtime_report_text(runtime, 30, text, sizeof text, NULL, &error), &error);
  fputs(text, stderr);
}

int main(void) {
  uptier_error error;
  uptier_runtime* runtime = NULL;
  check(uptier_runtime_create(NULL, NULL, &runtime, &error), &error);

  const uptier_host host = {sizeof host, build_sum, NULL, NULL};
  const uptier_type params[] = {UPTIER_TYPE_I64};
  uptier_method_info info = {.size = sizeof info, .module_key = 1, .name = "sum", .host = &host};
  info.signature = (uptier_signature){params, 1, UPTIER_TYPE_I64};
  uptier_method sum;
  check(uptier_runtime_add_method(runtime, &info, &sum, &error), &error);

  check(uptier_runtime_attach(runtime, &error), &error);
  uptier_outcome last = {0};
  for (uint64_t n = 1; n <= 2000; ++n) {
    uint64_t args[] = {n * 100};
    check(uptier_runtime_invoke(runtime, sum, args, 1, &last, &error), &error);
  }
  printf("sum(200000) = %" PRIu64 "\n", last.bits);

  uptier_runtime_flush(runtime);
  print_report(runtime);
  uptier_runtime_detach(runtime);
  uptier_runtime_destroy(runtime);
  return last.bits == 20000100000 ? 0 : 1;
}
