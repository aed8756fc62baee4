#include "tiering/runtime/say_noticed.h"

#include "profile/base/wall.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {

// What is refused memory to be said stands in the losses all the same.
void say_noticed(Engine& engine) noexcept {
  finishes([&] {
    Notices& notices = engine.notices;
    notices.say_once(Notice::kUnattached, engine.calls_unattached.load(std::memory_order_relaxed));
    notices.say_once(Notice::kKeysShared, engine.observer->directory.keys().shared());
    if (engine.compiler) {
      notices.say_once(Notice::kUnstable, engine.compiler->unstable_bodies());
    }
  });
}

}  // namespace uptier::tiering
