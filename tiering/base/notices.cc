#include "tiering/base/notices.h"

#include <iterator>

namespace uptier::tiering {
namespace {

constexpr const char* kTexts[] = {
    "a thread that is not attached calls an entry: such calls are not counted and make nothing "
    "faster; attach it (Runtime::attach, ThreadScope), or call by invoke (calls_unattached in the "
    "report has their number)",
    "methods with different names or bodies have the same MethodInfo::key, and profiles cannot "
    "tell "
    "them apart (keys_shared in the report has their number)",
    "Host::build describes a method differently each time: it stays in the code that it has "
    "(last_error in the report names it, unstable_bodies has the number of such methods)",
};
static_assert(std::size(kTexts) == static_cast<size_t>(Notice::kCount));

}  // namespace

void Notices::say_slow(Notice n) noexcept {
  auto i = static_cast<size_t>(n);
  if (said_[i].exchange(true, std::memory_order_relaxed)) return;
  log_.say(LogLevel::kWarning, kTexts[i]);
}

}  // namespace uptier::tiering
