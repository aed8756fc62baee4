// uptier trace: what a trace file holds, and whether it is one.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "profile/trace/dump.h"
#include "profile/trace/validate.h"
#include "tools/commands.h"
#include "tools/profile_commands.h"
#include "tools/profile_json.h"
#include "uptier/inlined.h"
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

namespace {

// Reads a trace file; says on stderr what is wrong with it. Returns an exit code.
int read_profile(const std::string& file, TraceProfile& trace,
                 std::vector<InlinedProfile>* inlined = nullptr) {
  std::vector<uint8_t> bytes;
  if (!read_file(file, bytes)) return kFailed;
  Result<TraceProfile> t = profile_from_trace(std::as_bytes(std::span(bytes)));
  if (!t) {
    std::fprintf(stderr, "uptier: %s: %s\n", file.c_str(), t.error().message.c_str());
    return kCorrupt;
  }
  trace = std::move(*t);
  if (inlined == nullptr) return kOk;
  // What the profile could be read from holds no corrupt events.
  auto known = inlined_from_trace(std::as_bytes(std::span(bytes)));
  if (known) *inlined = std::move(*known);
  return kOk;
}

}  // namespace

int trace_profile(const std::string& file, bool json) {
  TraceProfile trace;
  std::vector<InlinedProfile> inlined;
  if (int code = read_profile(file, trace, &inlined); code != kOk) return code;
  std::string text = json ? profile_json(trace) : to_text(trace.profile);
  if (!json) text += to_text(inlined, trace.profile);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const std::pair<uint64_t, const char*> notes[] = {
      {trace.truncated, "the trace ends early; what precedes is in the profile"},
      {trace.skipped, "events of an unknown kind or format were skipped"},
      {trace.lost, "events were lost by the runtime"},
      {trace.report.dropped.size(), "profiles of methods whose code changed were left out"},
      {trace.report.saturated, "counts stopped at 2^64-1"}};
  for (const auto& [count, what] : notes) {
    if (count == 0) continue;
    std::fprintf(stderr, "uptier: %s: %llu: %s\n", file.c_str(),
                 static_cast<unsigned long long>(count), what);
  }
  return kOk;
}

int trace_overlap(const std::string& a, const std::string& b) {
  TraceProfile first, second;
  if (int code = read_profile(a, first); code != kOk) return code;
  if (int code = read_profile(b, second); code != kOk) return code;
  print_overlap(compare(first.profile, second.profile));
  return kOk;
}

void print_overlap(OverlapReport r) {
  std::printf("overlap %.6f; only in the first %.4f, only in the second %.4f, mismatched %.4f\n",
              r.program.value, r.program.only_a, r.program.only_b,
              r.program.mismatched_a + r.program.mismatched_b);
  for (const KindOverlap& k : r.kinds) {
    std::printf("  %-12s %.6f\n", std::string(slot_kind_name(k.kind)).c_str(), k.overlap.value);
  }
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
}

}  // namespace uptier::tools
