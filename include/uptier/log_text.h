// log_text.h: log records with text.
//
//   add_log_format("read {u} bytes of {u}") --> b.log(format, {n, all}) --> records
//       --> lines: the text with the arguments, in saved profiles or read by the host
//
// Compiled code writes only numbers: a record for each argument, in a row, with a tag that names
// the format and the argument. Text is made when the records are read. Like all probes, log() does
// nothing in plain copies of the code: lines come from sampled calls and bursts of iterations only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/ids.h"
#include "uptier/log_format.h"
#include "uptier/report.h"
#include "uptier/result.h"

namespace uptier {

// The placeholders of a format, as letters: {} signed decimal (d), {u} unsigned, {x} hexadecimal,
// {f} a double. {{ and }} stand for braces. Errors: kInvalidArgument, with position and rule, for
// anything else between braces, a single }, more than kMostArguments placeholders, a zero byte, and
// a format longer than kMostText.
Result<std::string> log_placeholders(std::string_view format);

// Returns the text of a format that log_placeholders accepts. An argument that is missing prints
// as "?".
std::string log_text(std::string_view format, std::span<const uint64_t> arguments);

// One visit of a site that logs text.
struct LogLine {
  MethodId method;
  SiteId site = 0;      // of its first record
  uint32_t thread = 0;  // number of the attachment, from 1
  uint64_t cycles = 0;  // as in LogRecord
  LogFormat format;
  std::vector<uint64_t> arguments;  // as LogRecord::value

  friend bool operator==(const LogLine&, const LogLine&) = default;
};

// Joins records to lines, in the order of their last records. Records of other tags are left out.
// So are lines that lack a record, because a full ring has overwritten it; `incomplete` (may be
// null) receives their number.
std::vector<LogLine> log_lines(std::span<const LogRecord> records, uint64_t* incomplete = nullptr);

}  // namespace uptier
