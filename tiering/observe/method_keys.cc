#include "tiering/observe/method_keys.h"

#include <cassert>

#include "tiering/model/method.h"

namespace uptier::tiering {
namespace {

// FNV-1a with a different start value, so that it never equals a module's hash.
uint64_t key_of_name(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull ^ 0x6e616d65ull;
  for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return h != 0 ? h : 1;
}

}  // namespace

MethodKey MethodKeys::make(std::string_view name) {
  uint64_t module = key_of_name(name);
  return {module, made_[module]++};
}

// A host that alternately adds and removes methods of one name gets the same key each time.
void MethodKeys::give_back(const MethodKey& key) {
  assert(made_.contains(key.module_key));
  auto at = made_.find(key.module_key);
  if (at == made_.end() || at->second != key.function_index + 1) return;
  if (--at->second == 0) made_.erase(at);
}

void MethodKeys::add(Method& m, const Method* other) {
  if (other == nullptr) return;
  if (other->info.name != m.info.name) count(m);
  std::optional<uint64_t>& body = bodies_[m.info.key];
  if (!body && other->has_shape()) body = other->shape->cfg_hash;
}

void MethodKeys::learn(Method& m) {
  assert(m.has_shape());
  auto at = bodies_.find(m.info.key);
  if (at == bodies_.end()) return;
  if (!at->second) at->second = m.shape->cfg_hash;
  if (*at->second != m.shape->cfg_hash) count(m);
}

void MethodKeys::count(Method& m) {
  if (m.shares_key) return;
  m.shares_key = true;
  shared_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace uptier::tiering
