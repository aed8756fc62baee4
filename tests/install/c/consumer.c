/* The same program in C: it knows <uptier/uptier.h> and the library, and needs no C++ compiler. */
#include <stdio.h>
#include <uptier/uptier.h>

static uptier_status build_double(void* user, uptier_method method, uptier_builder* b,
                                  uptier_error* error) {
  (void)user, (void)method, (void)error;
  uptier_value n = uptier_build_param(b, 0);
  return uptier_build_ret(b, uptier_build_binary(b, UPTIER_OP_ADD, n, n));
}

int main(void) {
  const uptier_host host = {sizeof host, build_double, NULL, NULL};
  const uptier_type params[] = {UPTIER_TYPE_I64};
  uptier_method_info info = {.size = sizeof info, .name = "double", .host = &host};
  uptier_runtime* runtime = NULL;
  uptier_method method = {0};
  uptier_outcome outcome = {0};
  uptier_error error = {0};
  const uint64_t args[] = {21};

  info.signature = (uptier_signature){params, 1, UPTIER_TYPE_I64};
  if (uptier_runtime_create(NULL, NULL, &runtime, &error) != UPTIER_OK ||
      uptier_runtime_add_method(runtime, &info, &method, &error) != UPTIER_OK ||
      uptier_runtime_invoke(runtime, method, args, 1, &outcome, &error) != UPTIER_OK) {
    printf("%s\n", error.message);
    return 1;
  }
  uptier_runtime_destroy(runtime);
  printf("%s %s %u %s\n", uptier_type_name(UPTIER_TYPE_I64), uptier_tier_name(UPTIER_TIER_BASELINE),
         (unsigned)outcome.bits, uptier_status_name(UPTIER_INVALID_INPUT));
  return 0;
}
