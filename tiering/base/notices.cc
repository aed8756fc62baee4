#include "tiering/base/notices.h"

#include <iterator>

namespace uptier::tiering {
namespace {

constexpr const char* kTexts[] = {
    "a thread that is not attached calls an entry: such calls are not counted and do not get "
    "faster; attach the thread (Runtime::attach, ThreadScope), or use invoke (the report counts "
    "such calls: calls_unattached)",
    "methods with different names or bodies have the same MethodInfo::key, and profiles cannot "
    "tell them apart (the report counts them: keys_shared)",
    "Host::build describes a method differently each time: the method stays in its present code "
    "(the report names it: last_error, and counts such methods: unstable_bodies)",
    "perf_map or jit_dump: the file could not be written, so names of code are missing in it (the "
    "report counts them: code_names_lost)",
    "no memory for counts of a thread: if no later snapshot of the method came, they are in no "
    "profile and no trace (the report counts them: flushes_lost)",
};
static_assert(std::size(kTexts) == static_cast<size_t>(Notice::kCount));

}  // namespace

void Notices::say_slow(Notice n) noexcept {
  auto i = static_cast<size_t>(n);
  if (said_[i].exchange(true, std::memory_order_relaxed)) return;
  log_.say(LogLevel::kWarning, kTexts[i]);
}

}  // namespace uptier::tiering
