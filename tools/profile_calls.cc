// uptier profile show --calls and --order.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "profile/data/text.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"
#include "tools/shortened.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

std::string name_of(const Profile& p, const MethodKey& key) {
  const MethodProfile* m = p.find(key);
  if (m != nullptr && !m->name.empty()) return m->name;
  return profile::hex(key.module_key) + ":" + std::to_string(key.function_index);
}

ordered_json callee_json(const Profile& p, const MethodKey& key) {
  return {{"name", name_of(p, key)},
          {"module_key", key.module_key},
          {"function_index", key.function_index}};
}

}  // namespace

int profile_show_calls(const std::string& path, uint64_t top, bool json) {
  Result<ProfileFile> file = load_profile(path);
  if (!file) return fail(file.error());
  using Row = std::pair<CallProfile::Call, uint64_t>;
  std::vector<Row> rows(file->calls.graph.begin(), file->calls.graph.end());
  std::ranges::stable_sort(rows, std::greater<>{}, &Row::second);
  if (json) {
    ordered_json list = ordered_json::array();
    for (const auto& [call, count] : rows) {
      list.push_back({{"calls", count},
                      {"caller", callee_json(file->profile, call.first)},
                      {"callee", callee_json(file->profile, call.second)}});
    }
    return print_json({{"calls", std::move(list)}});
  }
  std::printf("%14s  %-32s %s\n", "calls", "caller", "callee");
  for (size_t i = 0; i < std::min<size_t>(rows.size(), top); ++i) {
    const auto& [call, count] = rows[i];
    std::printf("%14llu  %-32s %s\n", static_cast<unsigned long long>(count),
                shortened(name_of(file->profile, call.first), 32).c_str(),
                name_of(file->profile, call.second).c_str());
  }
  return kOk;
}

int profile_show_order(const std::string& path, uint64_t top, bool json) {
  Result<ProfileFile> file = load_profile(path);
  if (!file) return fail(file.error());
  const std::vector<MethodKey> order = file->calls.order();
  if (order.empty() && !file->profile.methods.empty()) {
    return fail(kOk, path + ": has no order of first calls");
  }
  if (json) {
    ordered_json list = ordered_json::array();
    for (const MethodKey& key : order) {
      const FirstCall& first = file->calls.first.at(key);
      list.push_back({{"position", first.mean()},
                      {"runs", static_cast<double>(first.runs) / CallProfile::kOneRun},
                      {"method", callee_json(file->profile, key)}});
    }
    return print_json({{"order", std::move(list)}});
  }
  std::printf("%10s %8s  %s\n", "position", "runs", "method");
  for (size_t i = 0; i < std::min<size_t>(order.size(), top); ++i) {
    const FirstCall& first = file->calls.first.at(order[i]);
    std::printf("%10.1f %8.2f  %s\n", first.mean(),
                static_cast<double>(first.runs) / CallProfile::kOneRun,
                name_of(file->profile, order[i]).c_str());
  }
  return kOk;
}

}  // namespace uptier::tools
