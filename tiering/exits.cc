#include "tiering/exits.h"

#include "jit/ir/deopt_points.h"
#include "jit/ir/loop_forest.h"

namespace uptier::tiering {

MethodExits::MethodExits(const jit::Function& f, const PolicyOptions& policy)
    : guards_(jit::count_guards(f)) {
  jit::LoopForest forest = jit::find_loop_forest(f);
  std::vector<Site> blocks;
  for (Block b : f.layout) {
    bool in_loop = forest.innermost[b.index()].valid();
    auto site = static_cast<SiteId>(blocks.size() + 1);
    uint32_t first = 0;
    for (jit::InstId id : f.block(b).insts) {
      const jit::Inst& i = f.inst(id);
      if (first == 0) first = i.loc;
      if (i.op != Opcode::kGuard) continue;
      sites_.push_back({site, static_cast<GuardReason>(i.aux), i.loc, in_loop});
    }
    blocks.push_back({site, GuardReason::kUnreached, first, in_loop});
  }
  sites_.insert(sites_.end(), blocks.begin(), blocks.end());
  counters_ = std::make_unique<Counter[]>(sites_.size());
  for (uint32_t e = 0; e < sites_.size(); ++e) {
    counters_[e].ask_at.store(exit_limit(snapshot(e), policy), std::memory_order_relaxed);
  }
}

bool MethodExits::count(uint32_t exit) noexcept {
  Counter& c = counters_[exit];
  uint64_t n = c.exits.fetch_add(1, std::memory_order_relaxed) + 1;
  uint64_t at = c.ask_at.load(std::memory_order_relaxed);
  // Whoever takes the number tells; it is put back by answer().
  return n >= at && c.ask_at.compare_exchange_strong(at, UINT64_MAX, std::memory_order_relaxed);
}

void MethodExits::ask_again(uint32_t exit) noexcept {
  counters_[exit].ask_at.store(0, std::memory_order_relaxed);
}

ExitSnapshot MethodExits::snapshot(uint32_t exit) const {
  const Site& s = sites_[exit];
  return {exits(exit) - s.answered, s.retries, s.in_loop, is_guard(exit)};
}

void MethodExits::answer(uint32_t exit, bool met, bool banned, const PolicyOptions& policy) {
  Site& s = sites_[exit];
  if (met) {
    s.answered = exits(exit);
    ++s.retries;
  }
  s.banned |= banned;
  uint64_t next = s.banned ? UINT64_MAX : s.answered + exit_limit(snapshot(exit), policy);
  counters_[exit].ask_at.store(next, std::memory_order_relaxed);
}

std::vector<uint8_t> MethodExits::kept_blocks(bool loop) const {
  std::vector<uint8_t> kept(sites_.size() - guards_);
  for (uint32_t b = 0; b < kept.size(); ++b) {
    const Site& s = sites_[guards_ + b];
    kept[b] = s.banned || (loop && s.kept) || exits(guards_ + b) != s.known;
  }
  return kept;
}

void MethodExits::compiled() {
  for (uint32_t e = 0; e < sites_.size(); ++e) {
    uint64_t now = exits(e);
    sites_[e].kept = now != sites_[e].known;
    sites_[e].known = now;
  }
}

std::string MethodExits::name(uint32_t exit) const {
  const Site& s = sites_[exit];
  std::string at = s.location == 0 ? "" : "@" + std::to_string(s.location);
  std::string what =
      is_guard(exit) ? "guard " + std::to_string(exit + 1) : "block " + std::to_string(s.block);
  return what + " (" + guard_reason_name(s.reason) + (at.empty() ? ")" : ", " + at + ")");
}

std::vector<ExitReport> MethodExits::report() const {
  std::vector<ExitReport> all;
  for (uint32_t e = 0; e < sites_.size(); ++e) {
    const Site& s = sites_[e];
    if (exits(e) == 0) continue;
    all.push_back(
        {s.block, is_guard(e) ? e + 1 : 0, s.reason, s.location, exits(e), s.retries, s.banned});
  }
  return all;
}

}  // namespace uptier::tiering
