#include "profile/algebra/same_names.h"

#include <string_view>
#include <vector>

namespace uptier::profile {
namespace {

// Methods without a partner by key, by name; null: several have it.
std::map<std::string_view, const MethodProfile*> alone(const Profile& p, const Profile& other) {
  std::map<std::string_view, const MethodProfile*> named;
  for (const auto& [key, m] : p.methods) {
    if (m.name.empty() || other.find(key) != nullptr) continue;
    const auto [at, added] = named.emplace(m.name, &m);
    if (!added) at->second = nullptr;
  }
  return named;
}

bool says_only_where(std::string_view name) { return name.starts_with("func["); }

MethodKey renamed(const MethodKey& key, const NewKeys& keys) {
  const auto at = keys.find(key);
  return at == keys.end() ? key : at->second;
}

Table renamed(const Table& targets, const NewKeys& keys) {
  Table table;
  for (const auto& [target, entry] : targets) {
    const MethodKey key = renamed({target.module_key, static_cast<uint32_t>(target.value)}, keys);
    TableEntry& to = table[{key.module_key, key.function_index}];
    to.count += entry.count;
    to.estimate += entry.estimate;
  }
  return table;
}

InlinedKey renamed(InlinedKey place, const NewKeys& keys) {
  place.root = renamed(place.root, keys);
  for (InlinedCall& call : place.path) call.callee = renamed(call.callee, keys);
  return place;
}

void collect(const PathTime& from, const NewKeys& keys, std::vector<PathFrame>& path,
             TimeProfile& to) {
  for (const PathTime& callee : from.callees) {
    PathFrame frame = callee.frame;
    if (frame.place == TimePlace::kMethod) frame.method = renamed(frame.method, keys);
    path.push_back(frame);
    to.add(path, callee.samples, callee.ns);
    collect(callee, keys, path, to);
    path.pop_back();
  }
}

}  // namespace

NewKeys same_names(const Profile& from, const Profile& to) {
  const auto there = alone(to, from);
  NewKeys keys;
  for (const auto& [name, m] : alone(from, to)) {
    const auto at = there.find(name);
    if (m == nullptr || at == there.end() || at->second == nullptr) continue;
    const bool same_code = m->schema.cfg_hash == at->second->schema.cfg_hash;
    if (same_code || !says_only_where(name)) keys.emplace(m->key, at->second->key);
  }
  return keys;
}

void rename_methods(Profile& p, const NewKeys& keys) {
  Profile result;
  for (auto& [old, method] : p.methods) {
    MethodProfile m = std::move(method);
    m.key = renamed(old, keys);
    for (auto& [at, table] : m.tables) {
      if (at.first == SlotKind::kCallTarget) table = renamed(table, keys);
    }
    const MethodKey key = m.key;
    result.methods.emplace(key, std::move(m));
  }
  for (auto& [place, inlined] : p.inlined) {
    InlinedBody body = std::move(inlined);
    for (auto& [at, site] : body.sites) {
      if (at.first == SlotKind::kCallTarget) site.table = renamed(site.table, keys);
    }
    result.inlined.emplace(renamed(place, keys), std::move(body));
  }
  p = std::move(result);
}

void rename_methods(TimeProfile& t, const NewKeys& keys) {
  TimeProfile result;
  std::vector<PathFrame> path;
  collect(t.root, keys, path, result);
  result.asked_ns = t.asked_ns;
  result.squares = t.squares;
  t = std::move(result);
}

}  // namespace uptier::profile
