#include "tiering/runtime/orphaned_trap.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tiering/runtime/engine.h"
#include "tiering/runtime/traps.h"

namespace uptier::tiering {
namespace {

// A line of text in its own buffer; it does not allocate.
class Line {
 public:
  void add(const char* text) { add(text, std::strlen(text)); }
  void add(const char* text, size_t bytes) {
    size_t room = sizeof text_ - 1 - size_;
    bytes = bytes < room ? bytes : room;
    std::memcpy(text_ + size_, text, bytes);
    size_ += bytes;
  }
  void say(const Log& log) {
    text_[size_] = 0;
    log.say(LogLevel::kError, {text_, size_});
  }

 private:
  char text_[512];
  size_t size_ = 0;
};

}  // namespace

void end_orphaned(const Engine& engine) noexcept {
  Trap t = take_trap(*sampler::current_context());
  Line line;
  line.add("trap ");
  line.add(trap_text(t.code));
  if (const Method* m = engine.known(t.method)) {
    constexpr size_t kMostOfAName = 300;
    line.add(" in ");
    line.add(m->info.name.data(), std::min(m->info.name.size(), kMostOfAName));
  }
  line.add(": no invoke is under way");
  line.say(engine.log);
  std::abort();
}

}  // namespace uptier::tiering
