#include "tiering/observe/add_shares.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace uptier::tiering {
namespace {

// A block in one version.
struct Ran {
  double executions = 0, exact = 0, by_loops = 0;
  double most = 0;    // by one share
  uint32_t word = 0;  // of that share
};

void add_block(const Ran& r, const TalliedSum::Place& beside, double beside_ran,
               TalliedSum::Block& b) {
  if (b.beside == beside) {
    b.beside_ran += beside_ran;
  } else if (r.executions > b.most) {
    b.beside = beside;
    b.beside_ran = beside_ran;
    b.elsewhere = b.executions;
  } else {
    b.elsewhere += r.executions;
  }
  b.most = std::max(b.most, r.executions);
  b.executions += r.executions;
  b.exact += r.exact;
  b.by_loops += r.by_loops;
}

}  // namespace

void add_shares(const jit::TallyTable& table, std::span<const jit::InlinePath> bodies,
                std::span<const double> counts, TalliedSum& to) {
  std::vector<std::pair<uint32_t, SiteId>> exact(counts.size());  // by word
  std::map<std::pair<uint32_t, SiteId>, Ran> blocks;
  for (const jit::TallyShare& s : table.shares) {
    if (s.exact && exact[s.word].second == 0) exact[s.word] = {s.body, s.site};
    if (counts[s.word] == 0) continue;
    Ran& r = blocks[{s.body, s.site}];
    double executions = s.per * counts[s.word];
    r.executions += executions;
    if (s.exact) r.exact += executions;
    if (s.word != jit::TallyTable::kEntries) r.by_loops += executions;
    if (executions <= r.most) continue;
    r.most = executions;
    r.word = s.word;
  }
  for (const auto& [at, r] : blocks) {
    std::vector<TalliedSum::Block>& of_body = to.blocks[bodies[at.first]];
    if (of_body.size() < at.second) of_body.resize(at.second);
    auto [body, site] = exact[r.word];
    double beside_ran = site != 0 ? blocks.at({body, site}).executions : 0;
    add_block(r, {bodies[body], site}, beside_ran, of_body[at.second - 1]);
  }
}

}  // namespace uptier::tiering
