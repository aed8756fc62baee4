// What happened, as the C API tells it.
#include <algorithm>

#include "tiering/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

// Returns the row of a method; one that was never called has none, and so an empty one.
MethodReport row_of(const uptier_runtime& runtime, MethodId m) {
  Report r = runtime.runtime->report();
  auto row = std::find_if(r.methods.begin(), r.methods.end(),
                          [&](const MethodReport& one) { return one.method == m; });
  return row != r.methods.end() ? std::move(*row) : MethodReport();
}

}  // namespace

extern "C" {

uptier_status uptier_runtime_report_text(const uptier_runtime* runtime, size_t methods_shown,
                                         char* buffer, size_t capacity, size_t* length,
                                         uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  return write_text(runtime->runtime->report().text(methods_shown), buffer, capacity, length,
                    error);
}

uptier_status uptier_runtime_profile_text(const uptier_runtime* runtime, char* buffer,
                                          size_t capacity, size_t* length,
                                          uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  return write_text(to_text(runtime->runtime->profile()), buffer, capacity, length, error);
}

uptier_status uptier_runtime_ir_text(uptier_runtime* runtime, uptier_method method, char* buffer,
                                     size_t capacity, size_t* length,
                                     uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  Result<std::string> text = runtime->runtime->ir(m->id);
  if (!text) return fail(error, text.error());
  return write_text(*text, buffer, capacity, length, error);
}

uptier_status uptier_runtime_method_totals(const uptier_runtime* runtime, uptier_method method,
                                           uptier_method_totals* out,
                                           uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (out->size != sizeof *out) return bad_argument(error, "uptier_method_totals::size is wrong");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  const MethodReport row = row_of(*runtime, m->id);
  *out = {};
  out->size = sizeof *out;
  out->calls = row.calls;
  out->sampled_calls = row.sampled_calls;
  out->loop_iterations = row.loop_iterations;
  out->bursts = row.bursts;
  out->flushes = row.flushes;
  out->osr_entries = row.osr_entries;
  out->versions = static_cast<uint32_t>(row.versions.size());
  out->tier = static_cast<uptier_tier>(row.tier);
  for (const VersionReport& v : row.versions) {
    out->code_bytes += v.freed ? 0 : v.code_bytes;
    out->compile_ns += v.compile_ns;
  }
  return UPTIER_OK;
}

uptier_status uptier_runtime_method_error(const uptier_runtime* runtime, uptier_method method,
                                          char* buffer, size_t capacity, size_t* length,
                                          uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  return write_text(row_of(*runtime, m->id).last_error, buffer, capacity, length, error);
}

uptier_status uptier_runtime_totals(const uptier_runtime* runtime, uptier_totals* out,
                                    uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (out->size != sizeof *out) return bad_argument(error, "uptier_totals::size is wrong");
  const Report r = runtime->runtime->report();
  *out = {};
  out->size = sizeof *out;
  out->methods_registered = r.methods_registered;
  out->methods_called = r.methods.size();
  out->decisions = r.decisions.size();
  out->code_bytes_in_service = r.code_bytes_in_service;
  out->code_bytes_freed = r.code_bytes_freed;
  out->compile_ns = r.compile_ns_total;
  out->samples_without_copy = r.losses.samples_without_copy;
  out->slabs_refused = r.losses.slabs_refused;
  out->flushes_delayed = r.losses.flushes_delayed;
  out->requests_dropped = r.losses.requests_dropped;
  out->compiles_failed = r.losses.compiles_failed;
  out->code_refused = r.losses.code_refused;
  out->trace_events_lost = r.losses.sink_errors;
  return UPTIER_OK;
}

}  // extern "C"
