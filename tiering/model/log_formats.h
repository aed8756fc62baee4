// LogFormats: the formats of log lines, by number.
//
//   Thread: any.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "uptier/log_format.h"
#include "uptier/result.h"
#include "uptier/thread_safety.h"

namespace uptier::tiering {

class LogFormats {
 public:
  // See Runtime::add_log_format. May throw std::bad_alloc.
  Result<LogFormat> add(std::string_view text);
  // Returns the text of a format that was added, or nothing.
  std::optional<std::string> find(LogFormat format) const;

 private:
  using Mutex = CheckedLock<std::mutex>;

  mutable Mutex mutex_;
  std::deque<std::string> texts_ UPTIER_GUARDED_BY(mutex_);                  // by number
  std::map<std::string_view, LogFormat> by_text_ UPTIER_GUARDED_BY(mutex_);  // views of texts_
};

}  // namespace uptier::tiering
