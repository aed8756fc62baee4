#include "profile/formats/csspgo.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "profile/base/numbers.h"
#include "profile/formats/llvm_names.h"

namespace uptier::profile {
namespace {

constexpr SiteId kMostSite = 0xffff;

// The probes of one body, in one place.
struct Body {
  uint64_t checksum = 0;
  uint64_t head = 0;
  std::map<SiteId, uint64_t> probes;
  std::map<SiteId, std::map<std::string, uint64_t>> callees;
  std::map<std::pair<SiteId, std::string>, Body> inlined;

  uint64_t total() const {
    uint64_t sum = 0;
    for (const auto& [site, count] : probes) add_saturating(sum, count);
    for (const auto& [at, body] : inlined) add_saturating(sum, body.total());
    return sum;
  }
};

std::vector<std::pair<std::string, uint64_t>> most_first(
    const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater<>{}, [](const auto& item) { return item.second; });
  return sorted;
}

LlvmNames names_in(const Profile& p) {
  LlvmNames names;
  for (const auto& [key, m] : p.methods) names.add(key, m.name);
  return names;
}

class CsspgoWriter {
 public:
  CsspgoWriter(const Profile& p, const CallProfile& calls)
      : profile_(p), calls_(calls), names_(names_in(p)) {
    for (const auto& [key, m] : p.methods) by_hash_.emplace(name_hash(m.name), key);
  }

  std::string run(Contexts contexts) {
    for (const auto& [key, m] : profile_.methods) {
      if (m.check().ok()) add_method(m);
    }
    for (const auto& [key, body] : profile_.inlined) {
      if (body.check(key).ok()) add_inlined(key, body);
    }
    for (const auto& [key, m] : profile_.methods) {
      if (m.check().ok()) add_calls(m);
    }
    for (const auto& [key, body] : roots_) {
      contexts == Contexts::kApart ? write_apart(names_.of(key), body) : write_nested(key, body);
    }
    return std::move(out_);
  }

 private:
  static void add(std::map<SiteId, uint64_t>& to, SiteId site, uint64_t count) {
    if (site <= kMostSite) add_saturating(to[site], count);
  }

  // Returns the method whose name has this hash, in the caller's module if there are several.
  const MethodKey* with_hash(uint64_t hash, uint64_t module) const {
    const MethodKey* found = nullptr;
    const auto [from, to] = by_hash_.equal_range(hash);
    for (auto at = from; at != to; ++at) {
      if (found == nullptr || at->second.module_key == module) found = &at->second;
    }
    return found;
  }

  void add_method(const MethodProfile& m) {
    Body& body = roots_[m.key];
    body.checksum = m.schema.cfg_hash;
    body.head = m.calls;
    for (const Slot& s : m.schema.slots) {
      if (s.kind == SlotKind::kBlock) add(body.probes, s.site, m.estimates[s.word]);
    }
  }

  void add_inlined(const InlinedKey& key, const InlinedBody& inlined) {
    Body* body = &roots_[key.root];
    if (body->checksum == 0) body->checksum = inlined.code[0];
    for (size_t i = 0; i < key.path.size(); ++i) {
      if (key.path[i].site > kMostSite) return;
      body = &body->inlined[{key.path[i].site, names_.of(key.path[i].callee)}];
      body->checksum = inlined.code[i + 1];
    }
    for (const auto& [site, block] : inlined.blocks) add(body->probes, site, block.estimate);
    if (const auto entry = inlined.blocks.find(1); entry != inlined.blocks.end()) {
      body->head = entry->second.estimate;
    }
  }

  // A call runs as often as its block, less the executions of bodies that are inlined in its place.
  void add_calls(const MethodProfile& m) {
    Body& body = roots_[m.key];
    const auto shape = calls_.shapes.find(m.key);
    const bool known = shape != calls_.shapes.end() && shape->second.cfg_hash == m.schema.cfg_hash;
    if (!known) return;
    for (const Anchor& a : shape->second.anchors) {
      const bool calls = a.kind == AnchorKind::kCall || a.kind == AnchorKind::kIndirectCall;
      const Slot* block = m.schema.find(SlotKind::kBlock, a.block);
      if (!calls || block == nullptr || a.site == 0 || a.site > kMostSite) continue;
      uint64_t count = m.estimates[block->word];
      for (const auto& [at, inlined] : body.inlined) {
        if (at.first == a.site) count -= std::min(count, inlined.head);
      }
      add(body.probes, a.site, count);
      if (count != 0) add_callees(m, a, count, body.callees[a.site]);
    }
  }

  void add_callees(const MethodProfile& m, const Anchor& a, uint64_t count,
                   std::map<std::string, uint64_t>& to) const {
    if (a.kind == AnchorKind::kCall) {
      const MethodKey* callee = with_hash(a.target, m.key.module_key);
      if (callee != nullptr) to[names_.of(*callee)] = count;
      return;
    }
    const Table* table = m.table(SlotKind::kCallTarget, a.site);
    if (table == nullptr) return;
    for (const auto& [key, entry] : *table) {
      const MethodKey callee{key.module_key, static_cast<uint32_t>(key.value)};
      if (entry.estimate != 0) add_saturating(to[names_.of(callee)], entry.estimate);
    }
  }

  void write_probes(const Body& body, const std::string& indent) {
    for (const auto& [site, count] : body.probes) {
      out_ += indent + std::to_string(site) + ": " + std::to_string(count);
      if (const auto at = body.callees.find(site); at != body.callees.end()) {
        for (const auto& [name, n] : most_first(at->second)) {
          out_ += " " + name + ":" + std::to_string(n);
        }
      }
      out_ += "\n";
    }
  }

  void write_checksum(const Body& body, const std::string& indent) {
    out_ += indent + "!CFGChecksum: " + std::to_string(body.checksum) + "\n";
  }

  void write_nested_body(const Body& body, const std::string& indent) {
    write_probes(body, indent);
    for (const auto& [at, inlined] : body.inlined) {
      out_ += indent + std::to_string(at.first) + ": " + at.second + ":" +
              std::to_string(inlined.total()) + "\n";
      write_nested_body(inlined, indent + " ");
    }
    write_checksum(body, indent);
  }

  void write_nested(const MethodKey& key, const Body& body) {
    const uint64_t total = body.total();
    if (total == 0) return;
    out_ += names_.of(key) + ":" + std::to_string(total) + ":" + std::to_string(body.head) + "\n";
    write_nested_body(body, " ");
  }

  void write_apart(const std::string& context, const Body& body) {
    uint64_t own = 0;
    for (const auto& [site, count] : body.probes) add_saturating(own, count);
    if (own != 0) {
      out_ += "[" + context + "]:" + std::to_string(own) + ":" + std::to_string(body.head) + "\n";
      write_probes(body, " ");
      write_checksum(body, " ");
    }
    for (const auto& [at, inlined] : body.inlined) {
      write_apart(context + ":" + std::to_string(at.first) + " @ " + at.second, inlined);
    }
  }

  const Profile& profile_;
  const CallProfile& calls_;
  const LlvmNames names_;
  std::multimap<uint64_t, MethodKey> by_hash_;  // by the hash of the name
  std::map<MethodKey, Body> roots_;
  std::string out_;
};

}  // namespace

std::string to_csspgo(const Profile& profile, const CallProfile& calls, Contexts contexts) {
  return CsspgoWriter(profile, calls).run(contexts);
}

}  // namespace uptier::profile
