#include "tiering/runtime/say_noticed.h"

#include "profile/base/wall.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {

// If there is no memory for a message, the losses still have the number.
void say_noticed(Engine& engine) noexcept {
  finishes([&] {
    Notices& notices = engine.notices;
    notices.say_once(Notice::kUnattached, engine.calls_unattached.load(std::memory_order_relaxed));
    notices.say_once(Notice::kKeysShared, engine.observer->directory.keys().shared());
    if (engine.compiler) {
      notices.say_once(Notice::kUnstable, engine.compiler->describer().unstable_bodies());
    }
    if (engine.in_service) {
      notices.say_once(Notice::kNamesLost, engine.in_service->code_names_lost());
    }
    notices.say_once(Notice::kFlushesLost, engine.flushes_lost.load(std::memory_order_relaxed));
  });
}

}  // namespace uptier::tiering
