// uptier trace: what a trace file holds, and whether it is one.
#include <cstdio>

#include "profile/dump.h"
#include "profile/validate.h"
#include "tools/commands.h"

namespace uptier::tools {

int trace_dump(const std::string& file) {
  std::vector<uint8_t> bytes;
  if (!read_file(file, bytes)) return kFailed;
  std::string text = profile::dump_trace(std::as_bytes(std::span(bytes)));
  std::fputs(text.c_str(), stdout);
  Result<profile::TraceSummary> r = profile::validate(std::as_bytes(std::span(bytes)));
  return r ? kOk : kCorrupt;
}

int trace_validate(const std::string& file) {
  std::vector<uint8_t> bytes;
  if (!read_file(file, bytes)) return kFailed;
  Result<profile::TraceSummary> r = profile::validate(std::as_bytes(std::span(bytes)));
  if (!r) {
    std::fprintf(stderr, "uptier: %s: %s\n", file.c_str(), r.error().message.c_str());
    return kCorrupt;
  }
  std::printf("%s: valid; %llu events, %llu methods, %llu ids, %llu flushes, %llu dropped\n",
              file.c_str(), static_cast<unsigned long long>(r->events),
              static_cast<unsigned long long>(r->methods),
              static_cast<unsigned long long>(r->descs),
              static_cast<unsigned long long>(r->flushes),
              static_cast<unsigned long long>(r->dropped));
  return kOk;
}

}  // namespace uptier::tools
