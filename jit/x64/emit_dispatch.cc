// The switch at the top of an interpreter's loop is copied to the ends of the cases that come back
// to it:
//
//     top:  ... switch            case:  ...
//     case: ... jump top    ->           ... switch
//
// where the way from the case's end to the switch is short and the case is no rare one. What comes
// next depends on what was executed last, and predictors of indirect jumps tell jumps apart by
// where they are: one jump for all makes a loop's speed a matter of luck. A jump or two an
// iteration go as well.
//
// Done when registers are allocated: in the IR the loop would have an entrance for each case, and
// be none.
#include "jit/x64/emit_impl.h"

namespace uptier::jit::x64 {
namespace {

constexpr uint32_t kLeastCases = 4;
constexpr uint32_t kMostWayInsts = 16;  // of a way to a switch, moves included
constexpr uint32_t kMostCopied = 600;   // of all copies in a function
constexpr float kLeastShare = 0.005f;   // of the switch's executions

bool is_simple(const MInst& i) {
  switch (i.op) {
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost:
    case MOp::kLeave:
    case MOp::kTrapIf:
    case MOp::kReturn:
    case MOp::kTrap:
    case MOp::kBranch: return false;
    default: return true;
  }
}

}  // namespace

void Emitter::find_dispatches() {
  dispatch_.assign(m_.blocks.size(), 0);
  // Twice: a way may lead over a block that lies in front of the one it goes to.
  for (uint32_t turn = 0; turn < 2; ++turn) {
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) dispatch_[b] = dispatch_size(b);
  }
}

uint32_t Emitter::dispatch_size(uint32_t b) const {
  const MBlock& block = m_.blocks[b];
  const MInst& last = m_.terminator(block);
  if (block.loop == UINT32_MAX) return 0;
  uint32_t size = block.end - block.begin;
  if (size > kMostWayInsts) return 0;
  for (uint32_t n = block.begin; n < block.end; ++n) {
    if (!is_simple(m_.insts[n])) return 0;
  }
  size += static_cast<uint32_t>(first_move(block.end) - first_move(block.begin));
  if (last.op == MOp::kJump) {
    uint32_t on = dispatch_[target_[m_.edges_of(last)[0].to]];
    size = on == 0 ? 0 : size + on;
  } else if (last.op != MOp::kSwitch || last.edge_count < kLeastCases) {
    return 0;
  }
  return size <= kMostWayInsts ? size : 0;
}

// Emits a copy of a way to a switch in the place of a jump there. Returns whether it did.
bool Emitter::copy_dispatch(uint32_t b, float flow) {
  const MBlock &from = m_.blocks[now_], &to = m_.blocks[b];
  bool worth = from.loop == to.loop && flow >= kLeastShare * to.frequency;
  if (dispatch_[b] == 0 || !worth || copied_ + dispatch_[b] > kMostCopied) return false;
  copied_ += to.end - to.begin;
  emit_copy(b, flow);
  return true;
}

}  // namespace uptier::jit::x64
