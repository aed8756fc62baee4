#include "profile/upf/trace_info.h"

#include <set>

#include "profile/base/checksum.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

std::string schedule_of(const Provenance& from) {
  if (from.gap.empty() || from.options.empty()) return from.gap + from.options;
  return from.gap + ", " + from.options;
}

// Later settings replace earlier ones, except the interval.
void add_provenance(const Provenance& from, bool first, uptier::ProfileInfo& info) {
  info.interval = first || info.interval == from.interval ? from.interval : 0;
  info.engine = from.engine;
  info.schedule = schedule_of(from);
}

}  // namespace

uptier::UploadId trace_id(ByteSpan trace) { return {0, XXH3_64bits(trace.data(), trace.size())}; }

uptier::ProfileInfo trace_info(ByteSpan trace, const uptier::Profile& profile) {
  uptier::ProfileInfo info;
  bool first = true;
  for (TraceReader reader(trace, TraceReader::OnDamage::kResume); reader.next();) {
    const auto* from = std::get_if<Provenance>(&reader.event());
    if (from == nullptr) continue;
    add_provenance(*from, first, info);
    first = false;
  }
  std::set<uint64_t> modules;
  for (const auto& [key, method] : profile.methods) modules.insert(key.module_key);
  info.modules.assign(modules.begin(), modules.end());
  info.runs = 1;
  info.weight = uptier::ProfileInfo::kRunWeight;
  info.uploads = {trace_id(trace)};
  return info;
}

uptier::CallProfile calls_of(const uptier::TraceProfile& trace) {
  uptier::CallProfile calls;
  for (const auto& [method, position] : trace.first_calls) {
    calls.first[method] = {position, uptier::CallProfile::kOneRun};
  }
  return calls;
}

}  // namespace uptier::profile
