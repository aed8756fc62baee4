#include "tiering/model/side_exits.h"

#include <cassert>

#include "jit/analysis/deopt_targets.h"

namespace uptier::tiering {

MethodExits::MethodExits(const jit::Function& f, const jit::LoopForest& forest,
                         const PolicyOptions& policy)
    : guards_(jit::count_guards(f)) {
  std::vector<Site> blocks;
  for (Block b : f.layout) {
    bool in_loop = forest.innermost[b.index()].valid();
    auto site = static_cast<SiteId>(blocks.size() + 1);
    uint32_t first = 0;
    for (jit::InstId id : f.block(b).insts) {
      const jit::Inst& i = f.inst(id);
      if (first == 0) first = i.loc;
      if (i.op != Opcode::kGuard) continue;
      sites_.push_back({site, 0, static_cast<GuardReason>(i.aux), i.loc, in_loop});
    }
    blocks.push_back({site, 0, GuardReason::kUnreached, first, in_loop});
  }
  sites_.insert(sites_.end(), blocks.begin(), blocks.end());
  blocks_ = static_cast<uint32_t>(blocks.size());
  add_values(f, blocks);
  assert(sites_.size() >= size_t{guards_} + blocks_);  // guards, then blocks, then value sites
  counters_ = std::make_unique<Counter[]>(sites_.size());
  for (uint32_t e = 0; e < sites_.size(); ++e) {
    counters_[e].ask_at.store(exit_limit(snapshot(e), policy), std::memory_order_relaxed);
  }
}

// A value site counts as in a loop if its block is in one: its guard is in that block or before it.
void MethodExits::add_values(const jit::Function& f, const std::vector<Site>& blocks) {
  assert(blocks.size() == f.layout.size());
  std::vector<jit::InstId> probes = jit::value_probes(f);
  size_t next = 0;
  for (size_t b = 0; b < f.layout.size(); ++b) {
    for (jit::InstId id : f.block(f.layout[b]).insts) {
      if (next == probes.size() || probes[next] != id) continue;
      const jit::Inst& i = f.inst(id);
      ++next;
      sites_.push_back({blocks[b].block, i.aux, GuardReason::kValue, i.loc, blocks[b].in_loop});
    }
  }
}

bool MethodExits::count(uint32_t exit) noexcept {
  assert(exit < sites_.size());
  Counter& c = counters_[exit];
  uint64_t n = c.exits.fetch_add(1, std::memory_order_relaxed) + 1;
  uint64_t at = c.ask_at.load(std::memory_order_relaxed);
  // The thread that takes the number reports; answer() puts the number back.
  return n >= at && c.ask_at.compare_exchange_strong(at, UINT64_MAX, std::memory_order_relaxed);
}

void MethodExits::ask_again(uint32_t exit) noexcept {
  assert(exit < sites_.size());
  counters_[exit].ask_at.store(0, std::memory_order_relaxed);
}

ExitSnapshot MethodExits::snapshot(uint32_t exit) const {
  assert(exit < sites_.size() && sites_[exit].answered <= exits(exit));
  const Site& s = sites_[exit];
  return {exits(exit) - s.answered, s.retries, s.in_loop, is_guard(exit)};
}

void MethodExits::answer(uint32_t exit, bool met, bool banned, const PolicyOptions& policy) {
  assert(exit < sites_.size());
  Site& s = sites_[exit];
  if (met) {
    s.answered = exits(exit);
    ++s.retries;
  }
  s.banned |= banned;
  uint64_t next = s.banned ? UINT64_MAX : s.answered + exit_limit(snapshot(exit), policy);
  counters_[exit].ask_at.store(next, std::memory_order_relaxed);
}

void MethodExits::limits_changed(const PolicyOptions& policy) noexcept {
  for (uint32_t e = 0; e < sites_.size(); ++e) {
    uint64_t next = sites_[e].answered + exit_limit(snapshot(e), policy);
    std::atomic<uint64_t>& ask_at = counters_[e].ask_at;
    uint64_t at = ask_at.load(std::memory_order_relaxed);
    // Skip exits that are banned, and exits that the worker has been or will be told of.
    while (at != 0 && at != UINT64_MAX &&
           !ask_at.compare_exchange_weak(at, next, std::memory_order_relaxed)) {}
  }
}

std::vector<uint8_t> MethodExits::kept_blocks(bool loop) const {
  std::vector<uint8_t> kept(blocks_);
  for (uint32_t b = 0; b < blocks_; ++b) kept[b] = kept_now(guards_ + b, loop);
  return kept;
}

std::vector<SiteId> MethodExits::kept_values(bool loop) const {
  std::vector<SiteId> kept;
  for (uint32_t e = guards_ + blocks_; e < sites_.size(); ++e) {
    if (kept_now(e, loop)) kept.push_back(sites_[e].value);
  }
  return kept;
}

bool MethodExits::kept_now(uint32_t exit, bool loop) const {
  assert(exit < sites_.size() && sites_[exit].known <= exits(exit));
  const Site& s = sites_[exit];
  return s.banned || (loop && s.kept) || exits(exit) != s.known;
}

void MethodExits::compiled() {
  for (uint32_t e = 0; e < sites_.size(); ++e) {
    uint64_t now = exits(e);
    sites_[e].kept = now != sites_[e].known;
    sites_[e].known = now;
  }
}

std::string MethodExits::name(uint32_t exit, const jit::PositionTable& positions) const {
  const Site& s = sites_[exit];
  std::string at = s.location == 0 ? "" : "@" + std::to_string(s.location);
  const SourcePositions source = positions.find(s.location);
  if (!at.empty() && !source.empty()) at += ", " + position_text(source[0]);
  std::string what = s.value != 0     ? "site " + std::to_string(s.value)
                     : is_guard(exit) ? "guard " + std::to_string(exit + 1)
                                      : "block " + std::to_string(s.block);
  return what + " (" + guard_reason_name(s.reason) + (at.empty() ? ")" : ", " + at + ")");
}

uint32_t MethodExits::unnamed(uint32_t exit, const jit::PositionTable& positions) const {
  const uint32_t location = sites_[exit].location;
  return positions.find(location).empty() ? location : 0;
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
