#include "tiering/runtime/enterable_code.h"

#include <cassert>
#include <mutex>
#include <utility>

#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/model/event_of.h"
#include "tiering/model/looking_around.h"
#include "tiering/model/still_here.h"
#include "tiering/runtime/compilations.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/installer.h"
#include "tiering/runtime/looks.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

bool EnterableCode::make_enterable(Method& m) noexcept {
  StillHere still(engine_.here());
  jit::StandardFloats floats;
  for (int tries = 0; tries < 2; ++tries) {
    bool made = false;
    if (finishes([&] { made = make_enterable_version(m); })) return made;
  }
  compilations_.note_no_memory(m);
  return false;
}

bool EnterableCode::make_enterable_version(Method& m) {
  assert(engine_.compiler != nullptr);
  LookingAround looking(*engine_.looks);
  CompileTurn turn(engine_.turns, m);
  if (!turn) {  // the method's own `build` runs the code that is being left
    compilations_.say_turn_refused(m);
    return false;
  }
  if (usable(m.enterable.load(std::memory_order_acquire))) return true;
  if (!engine_.hosts->may_ask(m)) return false;
  Result<std::unique_ptr<Version>> v = engine_.compiler->make_enterable(m);
  HeldState lock(engine_.state_mutex);
  if (v) {
    assert((*v)->enterable);
    installer_.install(m, std::move(*v));
    return true;
  }
  m.last_error.put(v.error().message);
  engine_.events.emit(event_of(EventKind::kFailed, m, *m.last_error));
  return false;
}

}  // namespace uptier::tiering
