#include "jit/baseline/held_stretches.h"

#include <cstdint>
#include <optional>

#include "jit/ir/is_call.h"

namespace uptier::jit::baseline {

namespace {

constexpr double kRounds = 8;                  // of a loop, each time that it is entered
constexpr double kLeaves = 1 / (kRounds - 1);  // weight of an edge out of a loop; others weigh 1
constexpr double kRoundsACall = 3;             // in a stretch, at least

// The layout: the end of each loop in it, and the blocks that call.
struct Layout {
  explicit Layout(const Function& function)
      : f(function), size(f.layout.size()), position(f.blocks.size()), last(size), calls(size + 1) {
    for (uint32_t p = 0; p < size; ++p) position[f.layout[p].index()] = p;
    for (uint32_t p = 0; p < size; ++p) {
      uint32_t so_far = calls[p];
      for (InstId i : f.block(f.layout[p]).insts) so_far += is_call(f.inst(i).op) ? 1 : 0;
      calls[p + 1] = so_far;
      for (const Edge& e : f.successors(f.layout[p])) last[position[e.to.index()]] = p;
    }
  }
  bool is_loop(uint32_t p) const {
    return last[p] >= p && f.inst(f.block(f.layout[p]).insts[0]).op == Opcode::kLoopHeader;
  }
  bool traps(uint32_t p) const {
    return f.inst(f.block(f.layout[p]).insts.back()).op == Opcode::kTrap;
  }
  uint32_t calls_in(uint32_t first, uint32_t end) const { return calls[end + 1] - calls[first]; }

  const Function& f;
  uint32_t size;
  std::vector<uint32_t> position;  // by Block::index()
  std::vector<uint32_t> last;      // by position: of the last block that jumps back there
  std::vector<uint32_t> calls;     // by position: call sites before it
};

// How often a stretch calls and iterates each time that the body runs, estimated from its shape
// alone.
class LoopShape {
 public:
  explicit LoopShape(const Layout& l)
      : l_(l), runs_(l.size), calls_(l.size + 1), rounds_(l.size + 1) {
    runs_[0] = 1;
    for (uint32_t p = 0; p < l.size; ++p) {
      while (!ends_.empty() && ends_.back() < p) ends_.pop_back();
      bool loop = l.is_loop(p);
      if (loop) {
        runs_[p] *= kRounds;
        ends_.push_back(l.last[p]);
      }
      rounds_[p + 1] = rounds_[p] + (loop ? runs_[p] : 0);
      calls_[p + 1] = calls_[p] + runs_[p] * l.calls_in(p, p);
      share(p);
    }
  }

  // Also false if loops are nested so deeply that the sums are not finite.
  bool calls_rarely(uint32_t first, uint32_t end) const {
    double calls = calls_[end + 1] - calls_[first];
    return calls * kRoundsACall <= rounds_[end + 1] - rounds_[first];
  }

 private:
  double weight(uint32_t to) const {
    if (l_.traps(to)) return 0;
    return !ends_.empty() && to > ends_.back() ? kLeaves : 1;
  }

  // Distributes the executions of a block among its edges by weight; back edges are covered by
  // kRounds.
  void share(uint32_t p) {
    auto edges = l_.f.successors(l_.f.layout[p]);
    double all = 0;
    for (const Edge& e : edges) all += weight(l_.position[e.to.index()]);
    if (all == 0) return;
    for (const Edge& e : edges) {
      uint32_t to = l_.position[e.to.index()];
      if (to > p) runs_[to] += runs_[p] * weight(to) / all;
    }
  }

  const Layout& l_;
  std::vector<double> runs_;            // by position: executions of the block
  std::vector<double> calls_, rounds_;  // by position: sums over the positions before it
  std::vector<uint32_t> ends_;          // of the loops around a block, innermost last
};

}  // namespace

std::vector<bool> find_held(const Function& f) {
  if (f.loop_count == 0) return {};
  Layout l(f);
  std::optional<LoopShape> shape;  // computed only for loops with calls
  std::vector<bool> held(f.blocks.size());
  bool any = false;
  for (uint32_t p = 0; p < l.size; ++p) {
    if (!l.is_loop(p)) continue;
    uint32_t end = l.last[p];
    if (l.calls_in(p, end) != 0) {
      if (!shape) shape.emplace(l);
      if (!shape->calls_rarely(p, end)) continue;
    }
    for (uint32_t q = p; q <= end; ++q) held[f.layout[q].index()] = true;
    any = true;
    p = end;
  }
  return any ? held : std::vector<bool>();
}

}  // namespace uptier::jit::baseline
