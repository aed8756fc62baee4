#include "tiering/model/method.h"

#include <cassert>
#include <memory>

#include "tiering/base/clock.h"

namespace uptier::tiering {

LoopCopy* loop_copy(const Method& m, LoopId loop) noexcept {
  LoopCopies* all = m.optimizing->loop_copies.made();
  assert(all == nullptr || loop.index() < m.shape->loop_count);
  return all == nullptr ? nullptr : &all->at[loop.index()];
}

LoopCopy& own_loop_copy(Method& m, LoopId loop) {
  MadeLater<LoopCopies>& all = m.optimizing.own().loop_copies;
  if (all.made() == nullptr) {
    all.put({std::make_unique<LoopCopy[]>(m.shape->loop_count), now_ns(), 0});
  }
  return *loop_copy(m, loop);
}

}  // namespace uptier::tiering
