#include "tiering/runtime/host_loops.h"

#include <cassert>
#include <mutex>

#include "jit/analysis/slot_laws.h"
#include "jit/code/float_state.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/model/event_of.h"
#include "tiering/model/looking_around.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/looks.h"

namespace uptier::tiering {

bool HostLoops::know_loops(Method& m) {
  if (m.has_shape()) return true;
  if (engine_.policy_mode.load(std::memory_order_relaxed) == PolicyMode::kNever) return false;
  jit::StandardFloats floats;
  LookingAround looking(*engine_.looks);
  CompileTurn turn(engine_.turns, m);
  // Refused if the method's own `build` calls this: then the method is interpreted.
  if (!turn) return false;
  if (!engine_.is_method(m.id)) return false;  // removed since the request
  if (m.failed.load(std::memory_order_relaxed)) return false;
  if (m.has_shape()) return true;
  Status s = engine_.compiler->describer().describe_ahead(m);
  if (s) return true;
  HeldState lock(engine_.state_mutex);
  m.last_error.put(s.error().message);
  engine_.events.emit(event_of(EventKind::kFailed, m, *m.last_error));
  m.failed.store(true, std::memory_order_relaxed);
  return false;
}

void HostLoops::report_unknown_loop(Method& m, uint32_t loop, uint32_t loops) {
  assert(loop >= loops);
  HeldState lock(engine_.state_mutex);
  m.last_error.put(
      "osr_enter: loop " + std::to_string(loop) + " of " + std::to_string(loops) +
      ", counted from 0 as FunctionBuilder::loop_header does (the id in C is one more)");
}

void HostLoops::refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken) {
  assert(v.from_host && v.osr_loop.valid());
  if (v.frame_refused.exchange(true, std::memory_order_relaxed)) return;
  HeldState lock(engine_.state_mutex);
  m.last_error.put("osr_enter: " + m.info.name + ": slot " + std::to_string(broken.slot) +
                   " of loop " + std::to_string(v.osr_loop.index()) + " was described as " +
                   jit::law_text(broken) + ", which it is not in the frame");
}

}  // namespace uptier::tiering
