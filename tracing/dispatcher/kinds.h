// kinds.h: names of the kinds of events, and numbers for the kinds that tools define.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "uptier/thread_safety.h"
#include "uptier/tracing.h"

namespace uptier::tracing {

// Thread: any. Reading a name takes no lock.
class Kinds {
 public:
  Kinds();
  // Returns the number for a tool's name, always the same for the same pair; 0 if no number is
  // left.
  uint32_t user(const char* tool, const char* name);
  // Returns "task", "tool.name"; null if there is no such kind.
  const char* name(uint32_t kind) const noexcept;

 private:
  CheckedLock<std::mutex> mutex_;
  std::map<std::pair<std::string, std::string>, uint32_t> users_ UPTIER_GUARDED_BY(mutex_);
  std::array<std::string, UPTIER_TRACE_KINDS> texts_;
  std::array<std::atomic<const char*>, UPTIER_TRACE_KINDS> names_{};
};

}  // namespace uptier::tracing
