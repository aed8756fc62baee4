#include "tiering/saved/saved_calls.h"

#include <cassert>

#include "profile/base/numbers.h"

namespace uptier::tiering {

void learn_calls(Method& m, const jit::Function& f, const MethodTable& methods) {
  assert(m.has_shape());
  MethodShape& shape = *m.shape.made();
  shape.code_shape.put(jit::code_shape(f, [&](MethodId callee) -> std::string_view {
    const Method* m = methods.known(callee);
    return m == nullptr ? std::string_view() : m->info.name;
  }));
  shape.direct_calls = jit::direct_calls(f);
}

void add_calls(const Method& m, const Profile& seen, const MethodTable& methods,
               CallProfile& calls) {
  const MethodKey& caller = m.info.key;
  if (!m.shape->code_shape->empty()) calls.shapes[caller] = *m.shape->code_shape;
  const MethodProfile* p = seen.find(caller);
  if (p == nullptr) return;
  const auto add = [&](const MethodKey& callee, uint64_t count) {
    if (count != 0) profile::add_saturating(calls.graph[{caller, callee}], count);
  };
  for (const jit::DirectCall& call : m.shape->direct_calls) {
    const Slot* slot = p->schema.find(SlotKind::kBlock, call.block);
    const Method* callee = methods.known(call.callee);
    if (slot == nullptr || callee == nullptr) continue;
    add(callee->info.key, p->estimates[slot->word]);
  }
  for (const auto& [site, table] : p->tables) {
    if (site.first != SlotKind::kCallTarget) continue;
    for (const auto& [key, entry] : table) {
      add({key.module_key, static_cast<uint32_t>(key.value)}, entry.estimate);
    }
  }
}

}  // namespace uptier::tiering
