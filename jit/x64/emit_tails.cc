// Where a jump would go to a short block, the block is emitted once more:
//
//     b: ... jmp t            b: ... t's instructions
//     t: ...                         jcc x; jmp y
//        jcc x  (y follows)   t: ... as before
//
// Where the copy does not return, one way of it jumps as before and the other saves the jump; no way
// takes more instructions. What it costs is bytes, so it is done where jumps run often.
//
// Done when blocks have their order and values their registers: in the IR a copy gives what the
// block defines several definitions, and the joins of these moves and jumps of their own.
#include <algorithm>

#include "jit/x64/emit_impl.h"

namespace uptier::jit::x64 {
namespace {

constexpr uint32_t kMostTailInsts = 8;   // of a way that is copied, moves included
constexpr float kLeastFlow = 1.0f / 64;  // of the hottest block's executions
constexpr uint32_t kLeastRoom = 16;      // instructions of all copies in a function
constexpr uint32_t kShareOfRoom = 8;     // and an eighth of the function

// What counts is in code that hardly runs.
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

// Returns how many instructions a copy of the block has; 0 if there must be none.
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

// Emits a copy of a short block in the place of a jump there. Returns whether it did.
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

// Emits a block again that has its place elsewhere, for `flow` of its executions.
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

// Goes on to a block that takes `flow` executions from here.
void Emitter::go_to(uint32_t b, float flow) {
  b = target_[b];
  if (follows(b) || copy_dispatch(b, flow) || copy_tail(b, flow)) return;
  a_.jmp(labels_[b]);
}

}  // namespace uptier::jit::x64
