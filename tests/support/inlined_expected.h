// inlined_expected.h: the counts that instrumented copies of optimized code should have, by body.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jit/frontend/interpret.h"
#include "jit/probes/inlined_counts.h"
#include "jit/probes/plan_sites.h"
#include "tests/support/site_probe.h"

namespace uptier::test {

// Attributes each execution to the compiled body that should count it: while the interpreter goes
// from call to call, this observer goes from body to body of the compiled code.
class InlinedExpected : public jit::InterpretObserver {
 public:
  // `code` returns the code of a method, or null; `loops` returns its number of loops.
  InlinedExpected(std::function<const jit::Code*(uint32_t)> code,
                  std::function<uint32_t(uint32_t)> loops)
      : code_(std::move(code)), loops_(std::move(loops)) {}

  // Begins a new run and forgets the frames of the last one.
  void begin() {
    frames_.clear();
    next_.reset();
  }
  uint64_t at(uint32_t root, uint32_t body, SiteId site) const {
    auto found = counts_.find({root, body, site});
    return found == counts_.end() ? 0 : found->second;
  }

  void called(MethodId, SiteId site, MethodId callee) override {
    Frame from = frames_.back();
    next_ = Frame{callee.index(), 0};
    ++targets_[{from.root, from.body, site}][callee.index()];
    const jit::Code* code = code_(from.root);
    if (code == nullptr) return;
    const auto& rows = code->tables().inlined;
    for (uint32_t b = 1; b <= rows.size(); ++b) {
      const jit::InlineRow& r = rows[b - 1];
      bool here = r.parent == from.body && r.site == site && r.method == callee;
      if (here) next_ = Frame{from.root, b};
    }
  }
  void entered(MethodId m, LoopId l) override {
    if (l.index() != loops_(m.index())) return;
    frames_.push_back(next_ ? *next_ : Frame{m.index(), 0});
    next_.reset();
  }
  void left(MethodId m, LoopId l) override {
    if (l.index() == loops_(m.index())) frames_.pop_back();
  }
  // Returns the callees of a call in a body of the code: callee index to count.
  std::map<uint32_t, uint64_t> targets(uint32_t root, SiteId site, uint32_t body = 0) const {
    auto found = targets_.find({root, body, site});
    return found == targets_.end() ? std::map<uint32_t, uint64_t>() : found->second;
  }
  // Returns the value that a counter or hit probe of a body should have.
  uint64_t counter(uint32_t root, SiteId site, uint32_t body = 0) const {
    auto found = values_.find({root, body, site});
    if (found == values_.end()) return 0;
    uint64_t sum = 0;
    for (uint64_t v : found->second.seen) sum += found->second.kind == ProbeKind::kHit ? 1 : v;
    return sum;
  }
  void probe(MethodId, const jit::Inst& i, uint64_t seen) override {
    if (jit::counts_turns(i) || !keeps_values) return;
    Values& v = values_[{frames_.back().root, frames_.back().body, i.aux}];
    v.kind = jit::probe_kind(i);
    v.seen.push_back(seen);
  }
  bool keeps_values = true;  // false: probes are taken to see nothing
  // The values that probes saw, by root, body and site.
  struct Values {
    ProbeKind kind = ProbeKind::kBlock;
    std::vector<uint64_t> seen;
  };
  const std::map<std::array<uint32_t, 3>, Values>& values() const { return values_; }
  const std::map<std::array<uint32_t, 3>, std::map<uint32_t, uint64_t>>& all_targets() const {
    return targets_;
  }
  void block(MethodId, SiteId site) override {
    ++counts_[{frames_.back().root, frames_.back().body, site}];
  }

 private:
  struct Frame {
    uint32_t root = 0;
    uint32_t body = 0;
  };

  std::function<const jit::Code*(uint32_t)> code_;
  std::function<uint32_t(uint32_t)> loops_;
  std::vector<Frame> frames_;
  std::optional<Frame> next_;
  std::map<std::array<uint32_t, 3>, uint64_t> counts_;  // by root, body and site
  std::map<std::array<uint32_t, 3>, std::map<uint32_t, uint64_t>>
      targets_;  // also by root, body and site
  std::map<std::array<uint32_t, 3>, Values> values_;
};

using Entry = std::function<const void*(MethodId)>;

// Returns the counted targets of a call: callee index to count. `entry` gives the address of a
// callee; UINT32_MAX is the index of all others.
inline std::map<uint32_t, uint64_t> targets_in(const jit::SiteCounts& counts, const Entry& entry) {
  std::map<uint32_t, uint64_t> out;
  for (const sampler::TableEntry& e : counts.entries) {
    uint32_t callee = 0;
    while (reinterpret_cast<uint64_t>(entry(MethodId(callee))) != e.key) ++callee;
    out[callee] += e.count;
  }
  if (counts.words[0] != 0) out[UINT32_MAX] = counts.words[0];
  return out;
}
inline std::map<uint32_t, uint64_t> targets_in(const jit::ProbePlan& plan, uint32_t index,
                                               const std::vector<uint64_t>& slab,
                                               const Entry& entry) {
  return targets_in(jit::site_counts(plan, index, slab), entry);
}

struct InlinedTally {
  size_t bodies = 0, words = 0, ran = 0, unknown = 0, unknown_that_ran = 0;
  size_t copies = 0;  // words that ran and belong to several probe rows
  uint64_t counted = 0;
  size_t targets = 0, counters = 0;
  size_t of_bodies = 0;               // calls and probes of inlined bodies that saw something
  size_t targets_of_bodies = 0;       // of those calls, the callees
  std::map<ProbeKind, size_t> kinds;  // of those probes
  size_t no_room = 0;                 // calls and probes that saw something but have no words
};

// Compares all words of a slab with the expected counts. Returns the first difference, or "".
inline std::string compare_slab(uint32_t root, const jit::Code& code,
                                const std::vector<uint64_t>& slab,
                                const std::function<uint32_t(MethodId)>& blocks,
                                const InlinedExpected& expected, InlinedTally& tally) {
  for (SiteId s : jit::observed_sites(code)) {
    if (s > blocks(MethodId(root))) continue;  // a call, not a block
    if (slab[s - 1] != expected.at(root, 0, s)) return " block " + std::to_string(s);
  }
  std::map<std::pair<uint32_t, SiteId>, size_t> rows;
  for (const jit::ProbeRow& r : code.tables().probes) ++rows[{r.body, r.site}];
  const std::vector<jit::InlineRow>& inlined = code.tables().inlined;
  for (uint32_t b = 1; b <= inlined.size(); ++b) {
    ++tally.bodies;
    for (SiteId s = 1; s <= blocks(inlined[b - 1].method); ++s) {
      uint64_t want = expected.at(root, b, s);
      const auto* count = jit::find_inlined_count(code.tables().inlined_counts, b, s);
      if (count == nullptr) {
        ++tally.unknown;
        tally.unknown_that_ran += want != 0;
        continue;
      }
      ++tally.words;
      tally.ran += want != 0;
      tally.copies += rows[{b, s}] > 1 && want != 0;
      uint64_t got = slab[count->offset / 8];
      tally.counted += got;
      if (got == want) continue;
      return " body " + std::to_string(b) + " block " + std::to_string(s) + ": " +
             std::to_string(got) + ", not " + std::to_string(want);
    }
  }
  return "";
}

// Makes all NaNs the same: the interpreter and compiled code may produce different ones.
inline uint64_t without_nans(uint64_t bits, bool& any) {
  if (!std::isnan(std::bit_cast<double>(bits))) return bits;
  any = true;
  return std::bit_cast<uint64_t>(std::nan(""));
}

inline std::string compare_values(const jit::InlinedProbe& p, jit::SiteCounts got,
                                  std::vector<uint64_t> seen, bool floats) {
  bool nan = false;
  for (uint64_t& v : seen) v = floats ? without_nans(v, nan) : v;
  if (nan) {
    std::vector<uint64_t> all;
    for (const TableEntry& e : got.entries) {
      all.insert(all.end(), e.count, without_nans(e.key, nan));
    }
    got.entries = table_of(all);
    if (p.kind == ProbeKind::kGauge) got.words[0] = without_nans(got.words[0], nan);
  }
  jit::SiteCounts want = expected_counts(p.kind, seen, 0);
  if (want.entries.size() > p.top) {
    uint64_t mass = got.words.back();
    for (const TableEntry& e : got.entries) mass += e.count;
    return mass == seen.size() ? "" : "mass";
  }
  bool exact = p.kind == ProbeKind::kRange || p.kind == ProbeKind::kValue;
  bool first_only = (nan && exact) || p.kind == ProbeKind::kLog;
  if (first_only) got.words.resize(1), want.words.resize(1);
  if (got.words != want.words) {
    return "word 0 is " + std::to_string(got.words[0]) + ", not " + std::to_string(want.words[0]);
  }
  return got.entries == want.entries ? "" : "entries";
}

// Facts about the sites of methods.
struct SiteFacts {
  std::function<bool(uint32_t, SiteId)> indirect;  // tests whether the site is an indirect call
  std::function<bool(uint32_t, SiteId)> floats;    // tests whether the site is a probe of a float
};

// Compares the values that the calls and probes of inlined bodies saw. Returns the first
// difference, or "". A site that saw something must have words, unless there was no room for its
// body.
inline std::string compare_probes(uint32_t root, const jit::Code& code,
                                  const std::vector<uint64_t>& slab,
                                  const InlinedExpected& expected, const Entry& entry,
                                  const SiteFacts& facts, InlinedTally& tally) {
  const auto& probes = code.tables().inlined_probes;
  size_t words = 0;
  for (const jit::InlinedProbe& p : probes) words += words_of(p);
  const bool all = words < jit::kMostInlinedProbeWords / 2;  // false: some bodies may have had no
                                                             // room
  auto name = [](uint32_t body, SiteId site) {
    return " body " + std::to_string(body) + " site " + std::to_string(site) + ": ";
  };
  auto missing = [&](uint32_t body, SiteId site) -> std::string {
    ++tally.no_room;
    const auto& counts = code.tables().inlined_counts;
    bool counted = std::ranges::any_of(counts, [&](auto& c) { return c.body == body; });
    return all && counted ? name(body, site) + "has no words" : "";
  };
  for (const auto& [at, values] : expected.values()) {
    if (at[0] != root || at[1] == 0) continue;
    const jit::InlinedProbe* p = jit::find_inlined_probe(probes, at[1], at[2]);
    if (p == nullptr) {
      if (std::string wrong = missing(at[1], at[2]); !wrong.empty()) return wrong;
      continue;
    }
    if (p->kind != values.kind || p->of_call) return name(at[1], at[2]) + "kind";
    ++tally.of_bodies;
    ++tally.kinds[p->kind];
    if (p->kind == ProbeKind::kCallTarget) continue;
    bool floats = facts.floats(code.tables().inlined[at[1] - 1].method.index(), at[2]);
    std::string wrong = compare_values(*p, jit::site_counts(*p, slab), values.seen, floats);
    if (!wrong.empty()) return name(at[1], at[2]) + wrong;
  }
  for (const auto& [at, callees] : expected.all_targets()) {
    bool here = at[0] == root && at[1] != 0;
    if (!here || !facts.indirect(code.tables().inlined[at[1] - 1].method.index(), at[2])) continue;
    const jit::InlinedProbe* p = jit::find_inlined_probe(probes, at[1], at[2]);
    if (p == nullptr) {
      if (std::string wrong = missing(at[1], at[2]); !wrong.empty()) return wrong;
      continue;
    }
    ++tally.of_bodies;
    tally.targets_of_bodies += callees.size();
    if (!p->of_call || targets_in(jit::site_counts(*p, slab), entry) != callees) {
      return name(at[1], at[2]) + "targets";
    }
  }
  for (const jit::InlinedProbe& p : probes) {
    bool ran = p.of_call ? expected.all_targets().contains({root, p.body, p.site})
                         : expected.values().contains({root, p.body, p.site});
    bool any = std::any_of(slab.begin() + p.offset / 8, slab.begin() + p.offset / 8 + words_of(p),
                           [](uint64_t w) { return w != 0; });
    if (any && !ran) return name(p.body, p.site) + "saw what never was";
  }
  return "";
}

}  // namespace uptier::test
