// A jump to a short block is replaced by a copy of the block:
//
//     b: ... jmp t            b: ... t's instructions
//     t: ...                         jcc x; jmp y
//        jcc x  (y follows)   t: ... as before
//
// If the copy does not return, one of its branches jumps as before and the other saves a jump; no
// path takes more instructions. The cost is bytes, so it is done only for jumps that run often.
//
// Done after blocks are ordered and registers allocated: in the IR, copying a block would give its
// values several definitions, and the joins of those would need moves and jumps of their own.
#include <algorithm>

#include "jit/x64/emit_impl.h"

namespace uptier::jit::x64 {
namespace {

constexpr uint32_t kMostTailInsts = 8;   // the longest path that is copied, moves included
constexpr float kLeastFlow = 1.0f / 64;  // of the hottest block's frequency
constexpr uint32_t kLeastRoom = 16;      // instructions that all copies in a function may take,
constexpr uint32_t kShareOfRoom = 8;     // plus this share of the function: an eighth

// Instructions of probes are not copied: code with probes hardly runs.
bool may_copy(const MInst& i) {
  switch (i.op) {
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost:
    case MOp::kLeave:
    case MOp::kSwitch:
    case MOp::kCount:
    case MOp::kTally:
    case MOp::kObserve:
    case MOp::kTrap: return false;
    default: return i.exit == UINT32_MAX;
  }
}

}  // namespace

void Emitter::find_room_for_tails() {
  for (const MBlock& b : m_.blocks) least_flow_ = std::max(least_flow_, b.frequency);
  least_flow_ *= kLeastFlow;
  tail_room_ = kLeastRoom + static_cast<uint32_t>(m_.insts.size()) / kShareOfRoom;
}

// Returns the number of instructions in a copy of the block; 0 if it must not be copied.
uint32_t Emitter::tail_size(uint32_t b) const {
  const MBlock& block = m_.blocks[b];
  uint32_t size = block.end - block.begin - 1;
  if (size > kMostTailInsts || block.cold) return 0;
  bool frame = plan_.bare[now_] == plan_.bare[b] && plan_.makes[b] == FramePlan::Makes::kNot &&
               plan_.makes[now_] == FramePlan::Makes::kNot;
  if (!frame) return 0;
  for (uint32_t n = block.begin; n < block.end; ++n) {
    if (!may_copy(m_.insts[n])) return 0;
  }
  size += static_cast<uint32_t>(first_move(block.end) - first_move(block.begin));
  return size <= kMostTailInsts ? size : 0;
}

// Emits a copy of a short block in place of a jump to it. Returns whether it did.
bool Emitter::copy_tail(uint32_t b, float flow) {
  if (flow < least_flow_ || m_.blocks[now_].cold) return false;
  uint32_t size = tail_size(b);
  if (size == 0 || size + way_ > kMostTailInsts || size > tail_room_) return false;
  tail_room_ -= size;
  way_ += size;
  emit_copy(b, flow);
  way_ -= size;
  return true;
}

// Emits another copy of a block, which takes `flow` of the block's executions.
void Emitter::emit_copy(uint32_t b, float flow) {
  const size_t move = move_, probe = probe_;
  const uint32_t now = now_;
  const float part = part_;
  auto sooner = [](const MProbe& p, uint32_t inst) { return p.inst < inst; };
  auto first = std::lower_bound(m_.probes.begin(), m_.probes.end(), m_.blocks[b].begin, sooner);
  move_ = first_move(m_.blocks[b].begin);
  probe_ = static_cast<size_t>(first - m_.probes.begin());
  now_ = b;
  part_ = flow / m_.blocks[b].frequency;
  emit_insts(b);
  move_ = move;
  probe_ = probe;
  now_ = now;
  part_ = part;
}

// Continues at a block, with `flow` executions from here: by falling through, a copy, or a jump.
void Emitter::go_to(uint32_t b, float flow) {
  b = target_[b];
  if (follows(b) || copy_dispatch(b, flow) || copy_tail(b, flow)) return;
  a_.jmp(labels_[b]);
}

}  // namespace uptier::jit::x64
