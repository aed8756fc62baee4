// Records of log probes, and saved profiles, in the C API.
#include <algorithm>

#include "tiering/c_api/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

// A C answer: the totals and the first entries, as many as fit.
struct Answer {
  uptier_profile_answer totals = {};
  uptier_profile_entry* entries;
  size_t capacity;

  void operator()(const CounterAnswer& a) {
    totals.kind = UPTIER_ANSWER_COUNTER;
    totals.count = a.count;
    totals.estimate = a.estimate;
  }
  void operator()(const RangeAnswer& a) {
    totals.kind = UPTIER_ANSWER_RANGE;
    totals.count = a.count;
    totals.min = a.min;
    totals.max = a.max;
    totals.mean = a.mean;
  }
  void operator()(const ValuesAnswer& a) {
    (*this)(a.range);
    totals.kind = UPTIER_ANSWER_VALUES;
    totals.other = a.other;
    for (const auto& v : a.values) add({v.value, 0, 0, 0, v.count});
  }
  void operator()(const TargetsAnswer& a) {
    totals.kind = UPTIER_ANSWER_TARGETS;
    totals.other = a.other;
    for (const auto& t : a.targets) {
      add({0, t.method.module_key, t.method.function_index, 0, t.count});
    }
  }

 private:
  void add(const uptier_profile_entry& e) {
    if (totals.entry_count < capacity) entries[totals.entry_count] = e;
    totals.entry_count++;
  }
};

uptier_log_record to_c_record(const LogRecord& r) {
  return {to_c<uptier_method>(r.method), r.site, r.tag, r.thread, r.value, r.cycles};
}

}  // namespace

extern "C" {

uptier_status uptier_runtime_set_loop_meter(uptier_runtime* runtime, const char* unit,
                                            uptier_loop_begin begin, uptier_loop_end end,
                                            void* user, uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (unit == nullptr && begin != nullptr) return bad_argument(error, "the unit is NULL");
  // C has no noexcept; if the function throws, the process ends here as it would at noexcept.
  using Begin = uint64_t (*)(void*) noexcept;
  using End = uint64_t (*)(void*, uint64_t) noexcept;
  LoopMeter meter;
  if (unit != nullptr) meter.unit = unit;
  meter.begin = reinterpret_cast<Begin>(reinterpret_cast<void*>(begin));
  meter.end = reinterpret_cast<End>(reinterpret_cast<void*>(end));
  meter.user = user;
  Status s = runtime->runtime->set_loop_meter(meter);
  return s ? UPTIER_OK : fail(error, s.error());
}

uptier_status uptier_runtime_read_log(uptier_runtime* runtime, uptier_log_record* records,
                                      size_t capacity, size_t* count, uptier_error* error) noexcept
    try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (count == nullptr) return bad_argument(error, "count is NULL");
  if (records == nullptr && capacity != 0) return bad_argument(error, "the records are NULL");
  Held lock(runtime->log_mutex);
  if (runtime->log_read == runtime->log.size()) {
    runtime->log = runtime->runtime->read_log();
    runtime->log_read = 0;
  }
  size_t n = std::min(capacity, runtime->log.size() - runtime->log_read);
  auto from = runtime->log.begin() + static_cast<ptrdiff_t>(runtime->log_read);
  std::transform(from, from + static_cast<ptrdiff_t>(n), records, to_c_record);
  runtime->log_read += n;
  *count = n;
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_save_profile(uptier_runtime* runtime, uptier_error* error) noexcept
    try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  Status s = runtime->runtime->save_profile();
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_query(uptier_runtime* runtime, const char* stage,
                                   const char* scope_hash, const char* key,
                                   uptier_profile_answer* out, uptier_profile_entry* entries,
                                   size_t capacity, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (scope_hash == nullptr || key == nullptr) return bad_argument(error, "scope or key is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  constexpr size_t kFirst = UPTIER_C_END(uptier_profile_answer, mean);
  if (out->size < kFirst) {
    return bad_argument(error, "uptier_profile_answer: its size is too small");
  }
  if (entries == nullptr && capacity != 0) return bad_argument(error, "the entries are NULL");
  std::optional<ProfileAnswer> known =
      runtime->runtime->query(stage != nullptr ? stage : kQueryStage, scope_hash, key);
  if (!known)
    return fail(error, UPTIER_NOT_FOUND, "the profile has no data for " + std::string(key));
  Answer answer{.entries = entries, .capacity = capacity};
  std::visit(answer, known->what);
  answer.totals.methods = known->methods;
  answer.totals.samples = known->samples;
  write_struct(answer.totals, kFirst, out);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

}  // extern "C"
