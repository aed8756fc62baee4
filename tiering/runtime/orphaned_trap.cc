// A trap that no invoke is there for: somebody has called an entry, and the code trapped all the
// same. There is nowhere to unwind to, so the process ends, and says why.
//
// Runs in a signal handler, of a fault in compiled code, or below guest frames: nothing here allocates
// or locks but the log of the host's, which may.
#include <cstdlib>
#include <cstring>

#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

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

void RuntimeImpl::end_orphaned() noexcept {
  Trap t = take_trap(*sampler::current_context());
  Line line;
  line.add("trap ");
  line.add(trap_text(t.code));
  if (const Method* m = known(t.method)) {
    constexpr size_t kMostOfAName = 300;
    line.add(" in ");
    line.add(m->info.name.data(), std::min(m->info.name.size(), kMostOfAName));
  }
  line.add(": no invoke is under way");
  line.say(log_);
  std::abort();
}

}  // namespace uptier::tiering
