#include "profile/formats/probe_names.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "profile/data/text.h"

namespace uptier::profile {
namespace {

std::string plain_name(const MethodProfile* m, const MethodKey& key) {
  std::string name =
      m == nullptr || m->name.empty() ? "function_" + std::to_string(key.function_index) : m->name;
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) <= 0x20; }, '_');
  if (std::string_view("[#!").find(name.front()) != std::string_view::npos) name.front() = '_';
  if (name.front() >= '0' && name.front() <= '9') name.insert(0, 1, '_');
  return name;
}

void add_targets(const Table& table, std::set<MethodKey>& keys) {
  for (const auto& entry : table) {
    keys.insert({entry.first.module_key, static_cast<uint32_t>(entry.first.value)});
  }
}

std::set<MethodKey> mentioned(const Profile& profile) {
  std::set<MethodKey> keys;
  for (const auto& [key, m] : profile.methods) {
    keys.insert(key);
    for (const auto& [at, table] : m.tables) {
      if (at.first == SlotKind::kCallTarget) add_targets(table, keys);
    }
  }
  for (const auto& [key, body] : profile.inlined) {
    keys.insert(key.root);
    for (const InlinedCall& c : key.path) keys.insert(c.callee);
    for (const auto& [at, site] : body.sites) {
      if (at.first == SlotKind::kCallTarget) add_targets(site.table, keys);
    }
  }
  return keys;
}

}  // namespace

std::map<MethodKey, std::string> probe_names(const Profile& profile) {
  const std::set<MethodKey> keys = mentioned(profile);
  std::map<std::string, uint32_t> users;
  for (const MethodKey& key : keys) ++users[plain_name(profile.find(key), key)];

  std::map<MethodKey, std::string> names;
  std::set<std::string> taken;
  for (const MethodKey& key : keys) {
    const MethodProfile* m = profile.find(key);
    const std::string name = plain_name(m, key);
    if (users[name] != 1 || m == nullptr || m->name.empty()) continue;
    names[key] = name;
    taken.insert(name);
  }
  for (const MethodKey& key : keys) {
    if (names.contains(key)) continue;
    std::string name = "<" + hex(key.module_key) + ">:" + plain_name(profile.find(key), key);
    while (!taken.insert(name).second) name += ":" + std::to_string(key.function_index);
    names[key] = name;
  }
  return names;
}

}  // namespace uptier::profile
