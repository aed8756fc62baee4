#include "tiering/compile/kept_bodies.h"

#include <cassert>

#include "jit/analysis/deopt_targets.h"
#include "tiering/base/opt_range.h"

namespace uptier::tiering {
namespace {

// Larger bodies, in IR instructions, are not kept: they would not be inlined.
constexpr size_t kMostKept = 1000;
// The limit on the memory of all kept bodies, in bytes.
constexpr uint64_t kKeptBytes = 32 << 20;

uint64_t bytes_of(const jit::Function& f) {
  return f.insts.size() * sizeof(jit::Inst) + f.values.size() * sizeof(jit::ValueData) +
         f.edges.size() * sizeof(jit::Edge) + f.pool.size() * sizeof(Value) +
         f.blocks.size() * sizeof(jit::BlockData);
}

}  // namespace

bool KeptBodies::wanted() const {
  bool optimizes = options_.tier == TierMode::kAuto || options_.tier == TierMode::kOptimized;
  // Exact gaps promise that every call is counted.
  return options_.inlining && optimizes && options_.gap != GapMode::kExact;
}

void KeptBodies::keep_locked(Method& m, const jit::Function& f) {
  // The code of methods outside the range must not hide in methods inside it.
  bool in_range = OptRange::parse(options_.opt_range)->contains(method_hash(m.info));
  bool may = wanted() && in_range && !m.body && f.insts.size() <= kMostKept &&
             jit::find_frame_memory(f) == nullptr;
  uint64_t bytes = bytes_of(f);
  if (!may || bytes_ + bytes > kKeptBytes) return;
  assert(bytes_ + bytes <= kKeptBytes && m.body == nullptr);
  bytes_ += bytes;
  if (jit::count_guards(f) != 0) guards_.store(true, std::memory_order_relaxed);
  m.body = std::make_unique<const jit::Function>(f);
}

void KeptBodies::forget_locked(Method& m) {
  assert(!m.body || bytes_ >= bytes_of(*m.body));
  if (m.body) bytes_ -= bytes_of(*m.body);
  m.body.reset();
}

}  // namespace uptier::tiering
