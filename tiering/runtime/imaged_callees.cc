#include "tiering/runtime/imaged_callees.h"

#include <set>

#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/kept_bodies.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/image/image_code.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

// Depth of callees that are described, as of those that a saved profile knows.
constexpr uint32_t kDepth = 4;
// Methods that are looked at for one compilation.
constexpr size_t kMost = 256;

void describe(Engine& engine, Method& m, uint32_t depth, std::set<uint32_t>& seen) {
  if (seen.size() >= kMost || !seen.insert(m.id.number()).second || m.info.own_code) return;
  std::vector<MethodId> next;
  {
    CompileTurn turn(engine.turns, m);
    if (!turn || engine.is_removed(m) || !m.has_shape()) return;
    if (!engine.compiler->describer().describe_imaged(m)) return;
    if (depth < kDepth) next = likely_inlinees(engine, m);
  }
  for (MethodId id : next) {
    if (engine.is_method(id)) describe(engine, engine.method(id.index()), depth + 1, seen);
  }
}

}  // namespace

void describe_imaged_callees(Engine& engine, Method& m) {
  if (!engine.image->is_open() || !engine.bodies->wanted()) return;
  std::set<uint32_t> seen;
  describe(engine, m, 0, seen);
}

std::vector<MethodId> likely_inlinees(Engine& engine, Method& m) {
  std::vector<MethodId> found;
  HeldState lock(engine.state_mutex);
  const jit::Function* f = m.shape->described != nullptr ? m.shape->described.get() : m.body.get();
  if (f != nullptr) {
    for (const jit::Callee& c : f->callees) found.push_back(c.method);
  }
  for (const Estimates::Targets& t : engine.observer->estimates.targets_of(m)) {
    for (auto [target, count] : t.methods) found.push_back(target->id);
  }
  return found;
}

}  // namespace uptier::tiering
