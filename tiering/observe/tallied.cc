#include "tiering/observe/tallied.h"

#include <cassert>
#include <cmath>

namespace uptier::tiering {
namespace {

// Whether the block runs once for each one of its word.
bool is_exact(const jit::TallyShare& s) { return std::abs(s.per - 1) < 1e-4f; }

}  // namespace

void Tallied::add(const Version& v, TalliedSum& to) const {
  const jit::TallyTable& table = v.tallies;
  if (table.words.empty()) return;
  std::vector<double> counts;
  for (const jit::TallyWord& w : table.words) {
    assert(w.step != 0);
    counts.push_back(static_cast<double>(words_.count(w.at)) / w.step);
  }
  bool call = !v.osr_loop.valid();
  if (call) to.calls += counts[jit::TallyTable::kEntries];
  std::vector<TalliedSum::Place> exact(counts.size());
  for (const jit::TallyShare& s : table.shares) {
    if (is_exact(s) && exact[s.word].site == 0) exact[s.word] = {v.tally_paths[s.body], s.site};
  }
  for (const jit::TallyShare& s : table.shares) {
    if (counts[s.word] == 0) continue;
    std::vector<TalliedSum::Block>& blocks = to.blocks[v.tally_paths[s.body]];
    if (blocks.size() < s.site) blocks.resize(s.site);
    TalliedSum::Block& b = blocks[s.site - 1];
    double executions = s.per * counts[s.word];
    b.executions += executions;
    if (is_exact(s)) b.exact += executions;
    if (executions <= b.most) continue;
    b.most = executions;
    b.beside = exact[s.word];
  }
}

TalliedSum Tallied::sum_of(const Method& m) const {
  TalliedSum sum = m.optimizing->tallied;
  for (const auto& v : m.versions) add(*v, sum);
  return sum;
}

void Tallied::keep(Method& m, Version& v) {
  if (v.tallies.words.empty()) return;
  add(v, m.optimizing.own().tallied);
  words_.give(v.tallies.words.front().at, static_cast<uint32_t>(v.tallies.words.size()));
  v.tallies = {};
  v.tally_paths.clear();
}

}  // namespace uptier::tiering
