// Tail duplication. A short block that returns is copied to the ends of the blocks that jump to it,
// if these run often. This
//
//   - saves the jump
//   - separates a path that needs no frame from paths that have one, so that no frame is made for it
//     (regalloc/frame_plan.h)
//
// Counts decide whether a block runs often. A copy keeps the block's probes, so counts still add
// up. Values that the block defines are not used elsewhere, because nothing comes after it.
#include <algorithm>

#include "jit/opt/copy_tail.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostTailInsts = 6;      // without probes and constants
constexpr float kLeastCallShare = 0.0625f;  // of all calls, so there are at most 16 copies

class ReturnCopier {
 public:
  ReturnCopier(Function& f, const BlockCounts& counts) : f_(f), counts_(counts), preds_(f) {}

  void run() {
    const Inst* probe = first_block_probe(f_, f_.entry());
    if (counts_.empty() || probe == nullptr) return;
    least_ = std::max(kLeastCallShare * counts_.at(*probe), kLeastSeen * counts_.sample(*probe));
    bool any = false;
    for (Block b : f_.layout) any |= visit(b);
    if (any) remove_unreachable(f_);
  }

 private:
  bool visit(Block tail) {
    bool returns = f_.terminator(tail).op == Opcode::kReturn && tail != f_.entry();
    if (!returns || preds_[tail.index()].size() < 2 || !may_copy_tail(f_, tail, kMostTailInsts)) {
      return false;
    }
    bool any = false;
    for (const Predecessor& p : preds_[tail.index()]) {
      if (f_.terminator(p.from).op != Opcode::kJump || !runs_often(p.from)) continue;
      copy_tail(f_, tail, p.from, unused_);
      any = true;
    }
    return any;
  }

  bool runs_often(Block b) const {
    const Inst* probe = last_block_probe(f_, b);
    return probe != nullptr && counts_.at(*probe) >= least_;
  }

  Function& f_;
  const BlockCounts& counts_;
  const Predecessors preds_;
  float least_ = 0;
  std::vector<Redefinition> unused_;
};

}  // namespace

void tail_duplication(Function& f, const BlockCounts& counts) { ReturnCopier(f, counts).run(); }

}  // namespace uptier::jit
