// Copies the switch at the top of an interpreter's loop to the ends of the cases that jump back to
// it:
//
//     top:  ... switch            case:  ...
//     case: ... jump top    ->           ... switch
//
// It does so where the path from the case's end to the switch is short and the case is not rare.
// The next case depends on the last one, and predictors of indirect branches tell jumps apart by
// their addresses: with one jump for all cases a loop's speed is a matter of luck. It also saves a
// jump or two per iteration.
//
// Done after register allocation: in the IR the loop would get an entry for each case, and would no
// longer be a natural loop.
#include "jit/x64/emit_impl.h"

namespace uptier::jit::x64 {
namespace {

constexpr uint32_t kLeastCases = 4;
constexpr uint32_t kMostWayInsts = 16;  // the longest path to a switch, moves included
constexpr uint32_t kMostCopied = 600;   // the most instructions of all copies in a function
constexpr float kLeastShare = 0.005f;   // the least share of the switch's executions

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
  // Twice, because a path may lead over a block that precedes the one it goes to.
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

// Emits a copy of a path to a switch in place of a jump to it. Returns whether it did.
bool Emitter::copy_dispatch(uint32_t b, float flow) {
  const MBlock &from = m_.blocks[now_], &to = m_.blocks[b];
  bool worth = from.loop == to.loop && flow >= kLeastShare * to.frequency;
  if (dispatch_[b] == 0 || !worth || copied_ + dispatch_[b] > kMostCopied) return false;
  copied_ += to.end - to.begin;
  emit_copy(b, flow);
  return true;
}

}  // namespace uptier::jit::x64
