// uptier trace: what a trace file holds, and whether it is one.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "profile/dump.h"
#include "profile/validate.h"
#include "tools/commands.h"
#include "uptier/profile.h"

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
  std::printf(
      "%s: valid; %llu events, %llu methods, %llu ids, %llu flushes, %llu dropped\n", file.c_str(),
      static_cast<unsigned long long>(r->events), static_cast<unsigned long long>(r->methods),
      static_cast<unsigned long long>(r->descs), static_cast<unsigned long long>(r->flushes),
      static_cast<unsigned long long>(r->dropped));
  return kOk;
}

int trace_overlap(const std::string& a, const std::string& b) {
  std::optional<Profile> profiles[2];
  const std::string* files[2] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    std::vector<uint8_t> bytes;
    if (!read_file(*files[i], bytes)) return kFailed;
    Result<TraceProfile> t = profile_from_trace(std::as_bytes(std::span(bytes)));
    if (!t) {
      std::fprintf(stderr, "uptier: %s: %s\n", files[i]->c_str(), t.error().message.c_str());
      return kCorrupt;
    }
    profiles[i] = std::move(t->profile);
  }
  OverlapReport r = compare(*profiles[0], *profiles[1]);
  std::printf("overlap %.6f; only in the first %.4f, only in the second %.4f, mismatched %.4f\n",
              r.program.value, r.program.only_a, r.program.only_b,
              r.program.mismatched_a + r.program.mismatched_b);
  // What a method adds to the difference is at most its greater share.
  std::sort(r.methods.begin(), r.methods.end(), [](const MethodOverlap& x, const MethodOverlap& y) {
    auto difference = [](const MethodOverlap& m) {
      return (1 - m.value) * std::max(m.share_a, m.share_b) + std::fabs(m.share_a - m.share_b);
    };
    return difference(x) > difference(y);
  });
  std::printf("%-28s %9s %9s %9s\n", "method", "overlap", "share a", "share b");
  for (size_t i = 0; i < std::min<size_t>(r.methods.size(), 10); ++i) {
    const MethodOverlap& m = r.methods[i];
    std::printf("%-28.28s %9.4f %9.4f %9.4f\n", m.name.c_str(), m.value, m.share_a, m.share_b);
  }
  return kOk;
}

}  // namespace uptier::tools
