#include "tiering/compile/call_paths.h"

#include <algorithm>
#include <mutex>

#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/model/method_table.h"
#include "tiering/model/places.h"

namespace uptier::tiering {

// A callee that is fully optimized needs no counting: the call goes through the cell, past the
// stub, or directly if the callee is the code being made.
jit::CallTarget CallPaths::target(MethodId callee) {
  using Kind = jit::CallTarget::Kind;
  const jit::StubTable& stubs = env_.stubs;
  bool gone = !env_.methods.serves(callee);
  // A guess that was made before the removal still compares with the stub's address.
  bool means = !gone || removed_meanwhile(callee);
  if (means && std::ranges::find(reached_, callee) == reached_.end()) reached_.push_back(callee);
  if (gone) return {Kind::kStub, env_.routines.gone()};
  Method& m = env_.methods.at(callee.index());
  // If the cell may lead to code that counts, the stub makes sure that the thread has counters.
  bool counts_all = env_.options.gap == GapMode::kExact || env_.always_instrumented;
  if (counts_all || plan_.tier == Tier::kBaseline) return {Kind::kStub, stubs.stub(callee)};
  if (env_.options.count_optimized) {
    return {Kind::kCounted, stubs.cell(callee), stubs.stub(callee), stubs.tail(callee)};
  }
  // Code specialized for some values must not be called with others.
  bool self = callee == plan_.method && !plan_.osr_loop.valid() && !plan_.for_values;
  if (self) return {Kind::kSelf, nullptr};
  bool best = m.optimized.load(std::memory_order_acquire) != nullptr;
  if (best) return {Kind::kCell, stubs.cell(callee)};
  if (std::ranges::find(by_stub_, callee) == by_stub_.end()) by_stub_.push_back(callee);
  return {Kind::kStub, stubs.stub(callee)};
}

bool CallPaths::removed_meanwhile(MethodId id) const {
  HeldState lock(env_.state_mutex);
  const Method* m = env_.methods.known(id);
  return m != nullptr && m->removed && env_.places.removed_meanwhile(*m);
}

}  // namespace uptier::tiering
