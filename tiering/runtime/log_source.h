// LogSource: the lines of text that compiled code has logged, as data for the profile file.
//
// A line is in the file if the host had not read its records (Runtime::read_log) when the profile
// was saved. Gathering leaves the records where they are.
//
//   Thread: any, without the state mutex.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/upf/text_log.h"
#include "tiering/model/log_formats.h"
#include "uptier/gather.h"
#include "uptier/log_text.h"

namespace uptier::tiering {

struct Engine;

class LogSource final : public DataSource {
 public:
  explicit LogSource(const Engine& engine);

  LogFormats& formats() { return formats_; }
  const LogFormats& formats() const { return formats_; }

  std::string_view name() const noexcept override { return "log"; }
  void gather(GatherList& list) noexcept override;

 private:
  std::vector<profile::TextLog> logs() const;
  // Returns the Unix time in nanoseconds of a time stamp.
  struct Clock {
    uint64_t cycles, unix_ns;
    double ns_per_cycle;
    uint64_t time_of(uint64_t cycles) const;
  };
  Clock clock() const;

  const Engine& engine_;
  LogFormats formats_;
  // A time stamp and the monotonic time of one moment; a later one gives the rate.
  const uint64_t first_cycles_, first_ns_;
};

}  // namespace uptier::tiering
