// inlined_expected.h: what instrumented copies of optimized code should have counted, by body.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jit/ir/interpret.h"
#include "jit/opt/inlined_counts.h"
#include "jit/plan_sites.h"

namespace uptier::test {

// What ran, by the code that was to count it: as the interpreter goes from call to call, this goes
// from body to body of the code.
class InlinedExpected : public jit::InterpretObserver {
 public:
  // `code` gives the code of a method, or null; `loops` the number of its loops.
  InlinedExpected(std::function<const jit::Code*(uint32_t)> code,
                  std::function<uint32_t(uint32_t)> loops)
      : code_(std::move(code)), loops_(std::move(loops)) {}

  // A new run begins: none of an earlier one goes on.
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
    // Those of calls in inlined bodies are not counted.
    if (from.body == 0) ++targets_[{from.root, site}][callee.index()];
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
  // Returns the callees of a method's own call, by their index.
  std::map<uint32_t, uint64_t> targets(uint32_t root, SiteId site) const {
    auto found = targets_.find({root, site});
    return found == targets_.end() ? std::map<uint32_t, uint64_t>() : found->second;
  }
  // What a counter or a hit of a method's own body has come to.
  uint64_t counter(uint32_t root, SiteId site) const {
    auto found = counters_.find({root, site});
    return found == counters_.end() ? 0 : found->second;
  }
  void probe(MethodId, const jit::Inst& i, uint64_t seen) override {
    if (frames_.back().body != 0) return;
    counters_[{frames_.back().root, i.aux}] += jit::probe_kind(i) == ProbeKind::kHit ? 1 : seen;
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
  std::map<std::pair<uint32_t, SiteId>, std::map<uint32_t, uint64_t>> targets_;
  std::map<std::pair<uint32_t, SiteId>, uint64_t> counters_;
};

// Returns what a call was counted to reach, by the callee's index, of which `entry` gives the
// address; UINT32_MAX: others.
inline std::map<uint32_t, uint64_t> targets_in(const jit::ProbePlan& plan, uint32_t index,
                                               const std::vector<uint64_t>& slab,
                                               const std::function<const void*(MethodId)>& entry) {
  std::map<uint32_t, uint64_t> out;
  jit::SiteCounts counts = jit::site_counts(plan, index, slab);
  for (const sampler::TableEntry& e : counts.entries) {
    uint32_t callee = 0;
    while (reinterpret_cast<uint64_t>(entry(MethodId(callee))) != e.key) ++callee;
    out[callee] += e.count;
  }
  if (counts.words[0] != 0) out[UINT32_MAX] = counts.words[0];
  return out;
}

struct InlinedTally {
  size_t bodies = 0, words = 0, ran = 0, unknown = 0, unknown_that_ran = 0;
  size_t copies = 0;  // words of several rows that ran
  uint64_t counted = 0;
  size_t targets = 0, counters = 0;
};

// Compares all words of a slab with what was expected. Returns the first difference, or "".
inline std::string compare_slab(uint32_t root, const jit::Code& code,
                                const std::vector<uint64_t>& slab,
                                const std::function<uint32_t(MethodId)>& blocks,
                                const InlinedExpected& expected, InlinedTally& tally) {
  for (SiteId s : jit::observed_sites(code)) {
    if (s > blocks(MethodId(root))) continue;  // a call
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

}  // namespace uptier::test
