#include "jit/regalloc/edge_changes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace uptier::jit::machine {
namespace {

constexpr uint32_t kNoPiece = UINT32_MAX;

class Sweep {
 public:
  Sweep(const MachineFunction& m, const LiveRanges& live, const PieceList& list)
      : m_(m), list_(list), active_at_(m.vregs.size(), kNoPiece), seen_(m.vregs.size(), 0) {
    for (uint32_t v = 0; v < m.vregs.size(); ++v) {
      uint32_t p = list.pieces[v].next;
      if (p == kNoPiece) continue;
      for (const Range& r : live.ranges_of(v)) {
        starts_.push_back({r.from, v});
        ends_.push_back({r.to, v});
      }
      for (; p != kNoPiece; p = list.pieces[p].next) begins_.push_back({list.pieces[p].from, v});
    }
    for (auto* events : {&starts_, &ends_, &begins_}) std::sort(events->begin(), events->end());
    collect_arrivals();
  }

  std::vector<EdgeChange> run() {
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
      advance(2 * m_.blocks[b].begin);
      for (uint32_t k = arrivals_at_[b]; k < arrivals_at_[b + 1]; ++k) cross(arrivals_[k], b);
    }
    std::sort(changes_.begin(), changes_.end(), [](const EdgeChange& a, const EdgeChange& b) {
      return std::tie(a.block, a.edge, a.vreg) < std::tie(b.block, b.edge, b.vreg);
    });
    return std::move(changes_);
  }

 private:
  struct Event {
    uint32_t pos, vreg;
    auto operator<=>(const Event&) const = default;
  };
  struct Arrival {
    uint32_t from, edge;
  };

  void collect_arrivals() {
    std::vector<uint32_t> last(m_.blocks.size());  // by target: 1 + the block last seen to go there
    auto each = [&](auto visit) {
      std::fill(last.begin(), last.end(), 0);
      for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
        auto edges = m_.edges_of(m_.terminator(m_.blocks[b]));
        for (uint32_t k = 0; k < edges.size(); ++k) {
          if (std::exchange(last[edges[k].to], b + 1) != b + 1) visit(edges[k].to, Arrival{b, k});
        }
      }
    };
    arrivals_at_.assign(m_.blocks.size() + 1, 0);
    each([&](uint32_t to, Arrival) { ++arrivals_at_[to]; });
    uint32_t total = 0;
    for (uint32_t& n : arrivals_at_) n = total += n;
    arrivals_.resize(total);
    each([&](uint32_t to, Arrival a) { arrivals_[--arrivals_at_[to]] = a; });
  }

  // Moves the sweep to a position: `active_` then holds the vregs that are live there.
  void advance(uint32_t pos) {
    for (; next_end_ < ends_.size() && ends_[next_end_].pos <= pos; ++next_end_) {
      enter_until(ends_[next_end_].pos);
      leave(ends_[next_end_].vreg);
    }
    enter_until(pos + 1);
  }

  void enter_until(uint32_t pos) {
    for (; next_start_ < starts_.size() && starts_[next_start_].pos < pos; ++next_start_) {
      uint32_t v = starts_[next_start_].vreg;
      active_at_[v] = static_cast<uint32_t>(active_.size());
      active_.push_back(v);
    }
  }

  void leave(uint32_t v) {
    uint32_t at = std::exchange(active_at_[v], kNoPiece);
    active_[at] = active_.back();
    active_.pop_back();
    if (at < active_.size()) active_at_[active_[at]] = at;
  }

  void cross(Arrival a, uint32_t to) {
    uint32_t before = 2 * m_.blocks[a.from].end - 1, after = 2 * m_.blocks[to].begin;
    auto [low, high] = std::minmax(before, after);
    auto behind = [](uint32_t pos, const Event& e) { return pos < e.pos; };
    auto first = std::upper_bound(begins_.begin(), begins_.end(), low, behind);
    auto last = std::upper_bound(first, begins_.end(), high, behind);
    if (static_cast<size_t>(last - first) > active_.size()) {
      for (uint32_t v : active_) compare(a, v, before, after);
      return;
    }
    ++crossing_;
    for (auto it = first; it != last; ++it) {
      uint32_t v = it->vreg;
      if (active_at_[v] == kNoPiece || std::exchange(seen_[v], crossing_) == crossing_) continue;
      compare(a, v, before, after);
    }
  }

  void compare(Arrival a, uint32_t v, uint32_t before, uint32_t after) {
    if (list_.pieces[v].from == after) return;  // a parameter
    uint32_t p = list_.at(v, before), q = list_.at(v, after);
    if (p != q) changes_.push_back({a.from, a.edge, v, p, q});
  }

  const MachineFunction& m_;
  const PieceList& list_;
  std::vector<Event> starts_, ends_;  // of the ranges of vregs that have several parts
  std::vector<Event> begins_;         // the starts of their parts, except each first one
  size_t next_start_ = 0, next_end_ = 0;
  std::vector<uint32_t> active_;     // the vregs that are live at the sweep's position
  std::vector<uint32_t> active_at_;  // by vreg: its index in active_
  std::vector<uint32_t> seen_;       // by vreg: the last crossing that looked at it
  uint32_t crossing_ = 0;
  std::vector<Arrival> arrivals_;  // the jumps to block b start at arrivals_at_[b]
  std::vector<uint32_t> arrivals_at_;
  std::vector<EdgeChange> changes_;
};

}  // namespace

std::vector<EdgeChange> find_edge_changes(const MachineFunction& m, const LiveRanges& live,
                                          const PieceList& list) {
  return Sweep(m, live, list).run();
}

}  // namespace uptier::jit::machine
