#include "tools/json_out.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/commands.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Overlap& o) {
  return {{"overlap", o.value},
          {"only_a", o.only_a},
          {"only_b", o.only_b},
          {"mismatched_a", o.mismatched_a},
          {"mismatched_b", o.mismatched_b}};
}

}  // namespace

int print_json(const ordered_json& j) {
  using nlohmann::detail::error_handler_t;
  std::printf("%s\n", j.dump(2, ' ', false, error_handler_t::replace).c_str());
  return kOk;
}

ordered_json overlap_json(const OverlapReport& r) {
  ordered_json j = to_json(r.program);
  j["kind"] = slot_kind_name(r.kind);
  ordered_json kinds = ordered_json::object();
  for (const KindOverlap& k : r.kinds) {
    kinds[std::string(slot_kind_name(k.kind))] =
        k.comparable() ? to_json(k.overlap) : ordered_json(nullptr);
  }
  j["kinds"] = std::move(kinds);
  j["inlined"] = r.inlined ? to_json(*r.inlined) : ordered_json(nullptr);
  ordered_json methods = ordered_json::array();
  for (const MethodOverlap& m : r.methods) {
    methods.push_back({{"module_key", m.key.module_key},
                       {"function_index", m.key.function_index},
                       {"name", m.name},
                       {"mismatched", m.mismatched},
                       {"overlap", m.value},
                       {"share_a", m.share_a},
                       {"share_b", m.share_b},
                       {"behind_a", m.behind_a},
                       {"behind_b", m.behind_b}});
  }
  j["methods"] = std::move(methods);
  return j;
}

}  // namespace uptier::tools
