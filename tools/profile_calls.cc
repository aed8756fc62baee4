// uptier profile show --calls and --order.
#include <algorithm>
#include <cstdio>

#include "profile/formats/text.h"
#include "tools/column.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/profile_commands.h"

namespace uptier::tools {
namespace {

std::string name_of(const Profile& p, const MethodKey& key) {
  const MethodProfile* m = p.find(key);
  if (m != nullptr && !m->name.empty()) return m->name;
  return profile::hex(key.module_key) + ":" + std::to_string(key.function_index);
}

}  // namespace

int profile_show_calls(const std::string& path, uint64_t top) {
  Result<ProfileFile> file = load_profile(path);
  if (!file) return fail(file.error());
  using Row = std::pair<CallProfile::Call, uint64_t>;
  std::vector<Row> rows(file->calls.graph.begin(), file->calls.graph.end());
  std::ranges::stable_sort(rows, std::greater<>{}, &Row::second);
  std::printf("%14s  %-32s %s\n", "calls", "caller", "callee");
  for (size_t i = 0; i < std::min<size_t>(rows.size(), top); ++i) {
    const auto& [call, count] = rows[i];
    std::printf("%14llu  %s %s\n", static_cast<unsigned long long>(count),
                column(name_of(file->profile, call.first), 32).c_str(),
                name_of(file->profile, call.second).c_str());
  }
  return kOk;
}

int profile_show_order(const std::string& path, uint64_t top) {
  Result<ProfileFile> file = load_profile(path);
  if (!file) return fail(file.error());
  std::printf("%10s %8s  %s\n", "position", "runs", "method");
  const std::vector<MethodKey> order = file->calls.order();
  for (size_t i = 0; i < std::min<size_t>(order.size(), top); ++i) {
    const FirstCall& first = file->calls.first.at(order[i]);
    std::printf("%10.1f %8.2f  %s\n", first.mean(),
                static_cast<double>(first.runs) / CallProfile::kOneRun,
                name_of(file->profile, order[i]).c_str());
  }
  return kOk;
}

}  // namespace uptier::tools
