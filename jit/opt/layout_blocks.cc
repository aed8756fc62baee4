// There are two sections; the second one holds the cold blocks. Within a section the order is a
// depth-first reverse postorder that visits the likelier successor last, so that it comes next.
// Then the blocks of each loop are gathered at its header. A block is placed right after another
// one if most of its executions come from there; blocks on the less usual paths come later:
//
//     if (usual) { a } else { b }  c       ->       a  c  b
//
// Dominators stay before the blocks that they dominate. Blocks dominated by a cold block are cold too, so
// the two sections keep that order.
#include <algorithm>

#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

// A block is placed right after another one if more than this share of its executions comes from
// there, through a jump or through an edge of a branch. Above these shares fewer jumps are taken.
// (A block that the branch skips then comes later, and jumps back.)
constexpr float kMostJump = 0.5f;
constexpr float kMostBranch = 2.0f / 3;

class BlockOrder {
 public:
  BlockOrder(const Function& f, const LoopNest& n, const Frequencies& q)
      : f_(f), loops_(n), frequencies_(q), placed_(f.blocks.size()) {}

  std::vector<Block> run() {
    depth_first();
    members_.resize(loops_.loops.size());
    for (Block b : order_) {
      for (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop; l = loops_.loops[l].parent) {
        members_[l].push_back(b);
      }
    }
    place(order_, kNoLoop);
    std::stable_partition(out_.begin(), out_.end(),
                          [&](Block b) { return !frequencies_.cold[b.index()]; });
    return out_;
  }

 private:
  // Returns the successors in the order of the visit: edges that leave the loop first, the
  // likeliest last.
  std::vector<Block> successors_for_visit(Block b) {
    std::vector<Block> to;
    for (const Edge& e : f_.successors(b)) to.push_back(e.to);
    uint32_t loop = loops_.loop_of[b.index()];
    std::stable_sort(to.begin(), to.end(), [&](Block x, Block y) {
      bool leaves_x = !loops_.contains(loop, x), leaves_y = !loops_.contains(loop, y);
      if (leaves_x != leaves_y) return leaves_x;
      return frequencies_.at(x) < frequencies_.at(y);
    });
    return to;
  }

  void depth_first() {
    struct Frame {
      Block block;
      std::vector<Block> to;
      size_t next = 0;
    };
    std::vector<bool> seen(f_.blocks.size());
    std::vector<Frame> stack;
    auto push = [&](Block b) {
      seen[b.index()] = true;
      stack.push_back({b, successors_for_visit(b)});
    };
    push(f_.entry());
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.to.size()) {
        order_.push_back(top.block);
        stack.pop_back();
      } else if (Block b = top.to[top.next++]; !seen[b.index()]) {
        push(b);
      }
    }
    std::reverse(order_.begin(), order_.end());
  }

  // Appends the blocks, all of which are in `loop`; at the header of an inner loop, appends that
  // whole loop. The recursion is as deep as the loops are nested.
  void place(const std::vector<Block>& blocks, uint32_t loop) {
    for (Block b : blocks) {
      for (; b.valid() && !placed_[b.index()]; b = heir(b, loop)) {
        placed_[b.index()] = true;
        out_.push_back(b);
        uint32_t own = loops_.loop_of[b.index()];
        if (own != loop && loops_.is_header(b)) place(members_[own], own);
      }
    }
  }

  // Returns the likeliest successor in the loop if most of its executions come from here; or none.
  Block heir(Block b, uint32_t loop) const {
    const Inst& t = f_.terminator(b);
    Block likeliest = Block::none();
    float most = 0;
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
      if (frequencies_.shares[e] <= most) continue;
      most = frequencies_.shares[e];
      likeliest = f_.edges[e].to;
    }
    bool here = likeliest.valid() && loops_.contains(loop, likeliest) &&
                frequencies_.cold[b.index()] == frequencies_.cold[likeliest.index()];
    if (!here) return Block::none();
    float from_here = most * frequencies_.at(b) / frequencies_.at(likeliest);
    return from_here > (t.edge_count == 1 ? kMostJump : kMostBranch) ? likeliest : Block::none();
  }

  const Function& f_;
  const LoopNest& loops_;
  const Frequencies& frequencies_;
  std::vector<bool> placed_;
  std::vector<Block> order_;
  // By loop, blocks of inner loops included, in the sequence of `order_`.
  std::vector<std::vector<Block>> members_;
  std::vector<Block> out_;
};

}  // namespace

void layout_blocks(Function& f, const LoopNest& n, const Frequencies& q) {
  f.layout = BlockOrder(f, n, q).run();
}

}  // namespace uptier::jit
