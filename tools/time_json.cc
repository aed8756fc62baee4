#include "tools/time_json.h"

#include <nlohmann/json.hpp>

#include "tools/profile_top.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

// `total` receives the time of the path and all paths after it.
ordered_json path_json(const ProfileFile& file, const PathTime& p, uint64_t& total) {
  ordered_json j = {{"name", frame_name(file.profile, p.frame)}};
  if (p.frame.place == TimePlace::kMethod) {
    j["module_key"] = p.frame.method.module_key;
    j["function_index"] = p.frame.method.function_index;
  } else {
    j["place"] = time_place_name(p.frame.place);
  }
  j["samples"] = p.samples;
  j["ns"] = p.ns;
  uint64_t all = p.ns;
  ordered_json callees = ordered_json::array();
  for (const PathTime& callee : p.callees) callees.push_back(path_json(file, callee, all));
  j["total_ns"] = all;
  j["callees"] = std::move(callees);
  total += all;
  return j;
}

}  // namespace

ordered_json time_json(const ProfileFile& file) {
  const TimeProfile& time = file.calls.time;
  ordered_json paths = ordered_json::array();
  uint64_t total = 0;
  for (const PathTime& p : time.root.callees) paths.push_back(path_json(file, p, total));
  return {{"asked_ns", time.asked_ns},
          {"sampled_ns", time.sampled_ns},
          {"squares_us2", time.squares},
          {"paths", std::move(paths)}};
}

}  // namespace uptier::tools
