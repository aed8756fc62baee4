// The reports in the C API.
#include <algorithm>

#include "tiering/c_api/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

// Returns a method's row of the report. A method that was never called has no row; returns an empty
// one.
MethodReport row_of(const uptier_runtime& runtime, MethodId m) {
  Report r = report_of(runtime);
  auto row = std::find_if(r.methods.begin(), r.methods.end(),
                          [&](const MethodReport& one) { return one.method == m; });
  return row != r.methods.end() ? std::move(*row) : MethodReport();
}

}  // namespace

extern "C" {

uptier_status uptier_runtime_report_text(const uptier_runtime* runtime, size_t methods_shown,
                                         char* buffer, size_t capacity, size_t* length,
                                         uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  const std::string text = report_of(*runtime).text(methods_shown);
  if (text.empty()) return ran_out(error);
  return write_text(text, buffer, capacity, length, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_profile_text(const uptier_runtime* runtime, char* buffer,
                                          size_t capacity, size_t* length,
                                          uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  return write_text(to_text(runtime->runtime->profile()), buffer, capacity, length, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_ir_text(uptier_runtime* runtime, uptier_method method, char* buffer,
                                     size_t capacity, size_t* length, uptier_error* error) noexcept
    try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  Result<std::string> text = runtime->runtime->ir(m->id);
  if (!text) return fail(error, text.error());
  return write_text(*text, buffer, capacity, length, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_method_totals(const uptier_runtime* runtime, uptier_method method,
                                           uptier_method_totals* out, uptier_error* error) noexcept
    try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  const MethodReport row = row_of(*runtime, m->id);
  uptier_method_totals t = {};
  t.calls = row.calls;
  t.sampled_calls = row.sampled_calls;
  t.loop_iterations = row.loop_iterations;
  t.bursts = row.bursts;
  t.flushes = row.flushes;
  t.osr_entries = row.osr_entries;
  t.versions = static_cast<uint32_t>(row.versions.size());
  t.tier = static_cast<uptier_tier>(row.tier);
  t.osr_outs = row.osr_outs;
  t.left = row.left;
  t.left_for_host = row.left_for_host;
  for (const VersionReport& v : row.versions) {
    t.code_bytes += v.freed ? 0 : v.code_bytes;
    t.compile_ns += v.compile_ns;
  }
  constexpr size_t kFirst = UPTIER_C_END(uptier_method_totals, tier);
  const char* why = write_struct(t, kFirst, out);
  return why == nullptr ? UPTIER_OK
                        : bad_argument(error, std::string("uptier_method_totals: ") + why);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_method_error(const uptier_runtime* runtime, uptier_method method,
                                          char* buffer, size_t capacity, size_t* length,
                                          uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  return write_text(row_of(*runtime, m->id).last_error, buffer, capacity, length, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_totals(const uptier_runtime* runtime, uptier_totals* out,
                                    uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const Report r = report_of(*runtime);
  uptier_totals t = {};
  t.methods_registered = r.methods_registered;
  t.methods_called = r.methods_called();
  t.decisions = r.decisions.size();
  t.code_bytes_in_service = r.code_bytes_in_service;
  t.code_bytes_freed = r.code_bytes_freed;
  t.compile_ns = r.compile_ns_total;
  t.relays = r.relay.relays;
  t.relaid_bodies = r.relay.bodies;
  t.relaid_bytes = r.relay.bytes;
  t.samples_without_copy = r.losses.samples_without_copy;
  t.slabs_refused = r.losses.slabs_refused;
  t.flushes_delayed = r.losses.flushes_delayed;
  t.requests_dropped = r.losses.requests_dropped;
  t.compiles_failed = r.losses.compiles_failed;
  t.code_refused = r.losses.code_refused;
  t.trace_events_lost = r.losses.trace_events_lost;
  t.evictions = r.losses.evictions;
  t.log_records = r.losses.log_records;
  t.loops_full = r.losses.loops_full;
  t.loops_stale = r.losses.loops_stale;
  t.loops_spoiled = r.losses.loops_spoiled;
  t.polls_refused = r.losses.polls_refused;
  t.methods_forgotten = r.losses.methods_forgotten;
  t.decisions_forgotten = r.losses.decisions_forgotten;
  t.versions_forgotten = r.losses.versions_forgotten;
  t.traps_lost = r.losses.traps_lost;
  t.calls_unattached = r.losses.calls_unattached;
  t.keys_shared = r.losses.keys_shared;
  t.unstable_bodies = r.losses.unstable_bodies;
  t.flushes_lost = r.losses.flushes_lost;
  t.code_names_lost = r.losses.code_names_lost;
  t.stack_samples_lost = r.losses.stack_samples;
  constexpr size_t kFirst = UPTIER_C_END(uptier_totals, trace_events_lost);
  const char* why = write_struct(t, kFirst, out);
  return why == nullptr ? UPTIER_OK : bad_argument(error, std::string("uptier_totals: ") + why);
} catch (const std::exception&) { return ran_out(error); }

}  // extern "C"
