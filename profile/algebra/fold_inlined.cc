#include "profile/algebra/fold_inlined.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "profile/base/numbers.h"
#include "profile/data/schema.h"
#include "profile/data/slot_sums.h"

namespace uptier::profile {
namespace {

using uptier::InlinedBody;

const MethodKey& method_of(const InlinedKey& key) { return key.path.back().callee; }

bool is_of(const InlinedBody& body, const Schema& schema) {
  return body.code.back() == 0 || body.code.back() == schema.cfg_hash;
}

void add_body(const InlinedBody& body, MethodProfile& into) {
  uint64_t saturated = 0;
  for (const auto& [site, block] : body.blocks) {
    const Slot* slot = into.schema.find(SlotKind::kBlock, site);
    if (slot == nullptr) continue;
    add_counted(into.counts[slot->word], block.count, saturated);
    add_counted(into.estimates[slot->word], block.estimate, saturated);
  }
  for (const auto& [at, site] : body.sites) {
    const Slot* slot = into.schema.find(at.first, at.second);
    if (slot == nullptr) continue;
    const std::span<const Word> words = words_of(at.first);
    sum_slot(words, &into.counts[slot->word], site.counts.data(), saturated);
    sum_estimates(words, &into.estimates[slot->word], site.estimates.data(), saturated);
    if (!site.table.empty()) sum_table(into.tables[at], site.table, saturated);
  }
}

// Returns the blocks of a folded method whose count is 0 although nobody knows it.
std::set<SiteId> unknown_in(const std::vector<const InlinedBody*>& bodies, const MethodProfile& m) {
  std::set<SiteId> unknown;
  for (const InlinedBody* body : bodies) {
    const bool ran = std::ranges::any_of(
        body->blocks, [](const auto& b) { return b.second.count + b.second.estimate != 0; });
    if (!ran) continue;
    for (const Slot& slot : m.schema.slots) {
      const bool counted = slot.kind != SlotKind::kBlock || body->blocks.contains(slot.site) ||
                           m.counts[slot.word] != 0 || m.estimates[slot.word] != 0;
      if (!counted) unknown.insert(slot.site);
    }
  }
  return unknown;
}

// Returns the profile to which the bodies of a method are added; nothing without a schema.
std::optional<MethodProfile> own_profile(const Profile& p, const MethodKey& key,
                                         const SchemaOf& schema_of) {
  const MethodProfile* own = p.find(key);
  if (own != nullptr) return own->check().ok() ? std::optional(*own) : std::nullopt;
  const Schema* schema = schema_of ? schema_of(key) : nullptr;
  if (schema == nullptr) return std::nullopt;
  MethodProfile m;
  m.key = key;
  m.schema = *schema;
  m.counts.resize(schema->words());
  m.estimates.resize(schema->words());
  return m;
}

// ---- Methods that only bodies know ------------------------------------------------------------

using Sites = std::set<std::pair<SlotKind, SiteId>>;

Schema schema_with(uint64_t code, const Sites& sites) {
  Schema schema;
  schema.cfg_hash = code;
  for (const auto& [kind, site] : sites) schema.add(kind, site);
  return schema;
}

class Schemas {
 public:
  Schemas(const Profile& a, const Profile& b) : a_(a), b_(b) {
    for (const Profile* p : {&a, &b}) {
      for (const auto& [key, body] : p->inlined) {
        if (body.check(key).ok()) note(p == &a, method_of(key), body);
      }
    }
  }

  // Returns the schema of a method that has only bodies, but no profile, on a side.
  const Schema* of(bool in_a, const MethodKey& key) {
    const auto known = known_.find(key);
    if (known == known_.end()) return nullptr;
    const Known& k = known->second;
    const uint64_t code = in_a ? k.code_a : k.code_b;
    const MethodProfile* there = (in_a ? b_ : a_).find(key);
    if (there != nullptr && there->check().ok() && (code == 0 || code == there->schema.cfg_hash)) {
      return &there->schema;
    }
    const uint64_t either = code != 0 ? code : std::max(k.code_a, k.code_b);
    const auto [at, fresh] = made_.try_emplace({key, either});
    if (fresh) {
      Sites sites;
      for (const uint64_t c : {either, uint64_t{0}}) {
        const auto seen = k.sites.find(c);
        if (seen != k.sites.end()) sites.insert(seen->second.begin(), seen->second.end());
      }
      at->second = schema_with(either, sites);
    }
    return at->second.data_words() <= Schema::kMaxWords ? &at->second : nullptr;
  }

 private:
  struct Known {
    uint64_t code_a = 0, code_b = 0;  // the greatest hashes, as in merge
    std::map<uint64_t, Sites> sites;  // by code, for both sides
  };

  void note(bool in_a, const MethodKey& key, const InlinedBody& body) {
    // Nothing is needed for methods with a profile on both sides.
    if (a_.find(key) != nullptr && b_.find(key) != nullptr) return;
    Known& k = known_[key];
    uint64_t& code = in_a ? k.code_a : k.code_b;
    code = std::max(code, body.code.back());
    Sites& sites = k.sites[body.code.back()];
    for (const auto& [site, block] : body.blocks) sites.emplace(SlotKind::kBlock, site);
    for (const auto& [at, site] : body.sites) sites.insert(at);
  }

  const Profile& a_;
  const Profile& b_;
  std::map<MethodKey, Known> known_;
  std::map<std::pair<MethodKey, uint64_t>, Schema> made_;
};

}  // namespace

FoldedMethods fold_inlined(const Profile& p, const SchemaOf& schema_of) {
  std::map<MethodKey, std::vector<const InlinedBody*>> bodies;
  for (const auto& [key, body] : p.inlined) {
    if (body.check(key).ok()) bodies[method_of(key)].push_back(&body);
  }
  FoldedMethods folded;
  for (auto& [key, of_method] : bodies) {
    std::optional<MethodProfile> m = own_profile(p, key, schema_of);
    const size_t all = of_method.size();
    std::erase_if(of_method, [&](const InlinedBody* b) { return !m || !is_of(*b, m->schema); });
    folded.left_out += all - of_method.size();
    if (of_method.empty()) continue;
    for (const InlinedBody* body : of_method) add_body(*body, *m);
    std::set<SiteId> unknown = unknown_in(of_method, *m);
    if (!unknown.empty()) folded.unknown.emplace(key, std::move(unknown));
    folded.methods.emplace(key, std::move(*m));
  }
  return folded;
}

FoldedPair fold_both(const Profile& a, const Profile& b) {
  if (a.inlined.empty() && b.inlined.empty()) return {};
  Schemas schemas(a, b);
  return {fold_inlined(a, [&](const MethodKey& key) { return schemas.of(true, key); }),
          fold_inlined(b, [&](const MethodKey& key) { return schemas.of(false, key); })};
}

}  // namespace uptier::profile
