// text_log.h: lines of text that compiled code has logged, as instruments of IREE's database.
//
//     type "iree.instrument.log", stage "uptier.text"
//     scope    hash of the code @ name of the method, as for queries (profile_query.h)
//     key      log#<site>
//     metadata {"format":"..."}, see log_text.h
//     payload  lines * {u64 time, u32 thread, u32 arguments, arguments * u64}
//
// Times are Unix times in nanoseconds, ascending for each thread. There is one instrument for each
// site and run. A merge keeps each payload once, so it has the lines of all runs; a save keeps a
// limited number of bytes of earlier runs (keep_latest_logs).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/gather.h"
#include "uptier/profile_file.h"
#include "uptier/result.h"

namespace uptier::profile {

inline constexpr std::string_view kTextLogType = "iree.instrument.log";
inline constexpr std::string_view kTextLogStage = "uptier.text";

struct TextLog {
  struct Line {
    uint64_t time = 0;    // Unix time, nanoseconds
    uint32_t thread = 0;  // number of the attachment, from 1
    std::vector<uint64_t> arguments;

    friend bool operator==(const Line&, const Line&) = default;
  };

  std::string scope;
  uint32_t site = 0;
  std::string format;
  std::vector<Line> lines;

  friend bool operator==(const TextLog&, const TextLog&) = default;
};

inline bool is_text_log(const ForeignInstrument& i) {
  return i.type == kTextLogType && i.stage == kTextLogStage;
}

// Appends the instrument of a site.
void append_text_log(const TextLog& log, GatherList& list);
// Reads an instrument. Fails, with the instrument, the position and the rule, if it breaks one.
Result<TextLog> read_text_log(const ForeignInstrument& instrument);

// Removes text logs until their payloads have at most so many bytes in total, the oldest first (by
// their last line).
void keep_latest_logs(ForeignTables& tables, uint64_t bytes);

}  // namespace uptier::profile
