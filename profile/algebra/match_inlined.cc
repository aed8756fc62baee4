#include "profile/algebra/match_inlined.h"

namespace uptier::profile {
namespace {

// Replaces the key of a method on the path; returns false if its code is not known to have this
// `hash`.
bool rename(MethodKey& key, uint64_t hash, const SameMethods& same) {
  const auto at = same.find(key);
  if (at == same.end()) return false;
  const SameMethod& m = at->second;
  if (hash == 0 ? !m.profiled : hash != m.cfg_hash) return false;
  key = m.key;
  return true;
}

bool rename(InlinedKey& key, const InlinedBody& body, const SameMethods& same) {
  if (!body.check(key).ok() || !rename(key.root, body.code[0], same)) return false;
  for (size_t i = 0; i < key.path.size(); ++i) {
    if (!rename(key.path[i].callee, body.code[i + 1], same)) return false;
  }
  return true;
}

}  // namespace

InlinedMatch match_inlined(const InlinedBodies& old, const SameMethods& same) {
  InlinedMatch match;
  for (const auto& [place, body] : old) {
    InlinedKey key = place;
    if (rename(key, body, same)) {
      match.kept.emplace(std::move(key), body);
    } else {
      ++match.dropped;
    }
  }
  return match;
}

}  // namespace uptier::profile
