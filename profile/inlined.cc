#include "profile/inlined.h"

#include <algorithm>
#include <utility>

#include "profile/numbers.h"

namespace uptier {

Status InlinedBody::check(const InlinedKey& key) const {
  const auto broken = [](const char* rule) {
    return Error{ErrorCode::kInvalidInput, std::string("inlined body: ") + rule};
  };
  const auto no_site = [](const InlinedCall& call) { return call.site == 0; };
  const auto nothing = [](const auto& item) { return item.second == InlinedBlock{}; };
  if (key.path.empty()) return broken("no call leads to it");
  if (std::ranges::any_of(key.path, no_site)) return broken("a call of site 0");
  if (code.size() != key.path.size() + 1) return broken("not a hash for each method");
  if (blocks.empty()) return broken("no blocks");
  if (blocks.begin()->first == 0) return broken("a block of site 0");
  if (std::ranges::any_of(blocks, nothing)) return broken("a block without a count");
  return {};
}

namespace profile {
namespace {

constexpr uint64_t InlinedBlock::*kNumbers[] = {&InlinedBlock::count, &InlinedBlock::estimate,
                                                &InlinedBlock::samples};

void remove_empty(InlinedBodies& bodies) {
  for (auto& [key, body] : bodies) {
    std::erase_if(body.blocks, [](const auto& item) { return item.second == InlinedBlock{}; });
  }
  std::erase_if(bodies, [](const auto& item) { return item.second.blocks.empty(); });
}

}  // namespace

uint64_t add(InlinedBlock& into, const InlinedBlock& value) {
  uint64_t saturated = 0;
  for (auto n : kNumbers) saturated += add_saturating(into.*n, value.*n) ? 1 : 0;
  return saturated;
}

namespace {

// `body` is copied, or moved.
template <typename Body>
void add_body(InlinedBodies& into, const InlinedKey& key, Body&& body, MergeReport& report) {
  if (!body.check(key).ok()) {
    report.dropped.push_back(key.root);
    return;
  }
  const auto [at, added] = into.try_emplace(key, std::forward<Body>(body));
  if (added) return;
  InlinedBody& kept = at->second;
  const bool usable = kept.check(key).ok();
  if (usable && kept.code == body.code) {
    for (const auto& [site, block] : body.blocks) {
      report.saturated += add(kept.blocks[site], block);
    }
    return;
  }
  report.dropped.push_back(key.root);
  if (!usable || kept.code < body.code) kept = std::forward<Body>(body);
}

}  // namespace

void add(InlinedBodies& into, const InlinedBodies& from, MergeReport& report) {
  for (const auto& [key, body] : from) add_body(into, key, body, report);
}

void add(InlinedBodies& into, InlinedBodies&& from, MergeReport& report) {
  for (auto& [key, body] : from) add_body(into, key, std::move(body), report);
}

uint64_t scale(InlinedBodies& bodies, uint64_t numerator, uint64_t denominator) {
  uint64_t saturated = 0;
  for (auto& [key, body] : bodies) {
    for (auto& [site, block] : body.blocks) {
      for (auto n : kNumbers) block.*n = mul_div(block.*n, numerator, denominator, saturated);
    }
  }
  remove_empty(bodies);
  return saturated;
}

uint64_t take_off(InlinedBodies& from, const InlinedBodies& what) {
  uint64_t missing = 0;
  for (const auto& [key, body] : what) {
    const auto at = from.find(key);
    if (at == from.end() || at->second.code != body.code) continue;
    for (const auto& [site, block] : body.blocks) {
      InlinedBlock& kept = at->second.blocks[site];
      for (auto n : kNumbers) {
        missing += kept.*n < block.*n ? 1 : 0;
        kept.*n -= std::min(kept.*n, block.*n);
      }
    }
  }
  remove_empty(from);
  return missing;
}

}  // namespace profile
}  // namespace uptier
