#include "tiering/runtime/live_door.h"

#include <string>
#include <utility>

#include "tiering/base/log.h"
#include "tiering/live/door.h"
#include "tiering/live/live_words.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {

LiveDoor::LiveDoor(const Engine& engine) : live_(engine) {
  auto answer = [](const void* live) {
    return answer_of(static_cast<const LiveMaker*>(live)->live_time());
  };
  Result<std::unique_ptr<Door>> door = Door::open(engine.options.listen, answer, &live_, {});
  if (door) {
    door_ = std::move(*door);
  } else {
    engine.log.say(LogLevel::kWarning, "listen: " + door.error().message);
  }
}

LiveDoor::~LiveDoor() = default;

}  // namespace uptier::tiering
