// uptier trace: what a trace file holds, and whether it is one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "profile/trace/dump.h"
#include "profile/trace/read_trace.h"
#include "profile/trace/trace_file.h"
#include "profile/trace/validate.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/merge_messages.h"
#include "tools/profile_commands.h"
#include "tools/profile_json.h"
#include "tools/shortened.h"
#include "tools/streams.h"
#include "tools/trace_json.h"
#include "uptier/profile.h"

namespace uptier::tools {

namespace {

// Reads a file, or stdin. On failure prints a message and returns false.
bool read_bytes(const std::string& file, std::vector<uint8_t>& bytes) {
  return read_file(seekable(file), bytes);
}

// Prints the events like profile::dump_trace, also those after damage. Returns the damaged places.
std::vector<std::string> print_events(std::span<const std::byte> bytes) {
  profile::TraceReader reader(bytes, profile::TraceReader::OnDamage::kResume);
  profile::EventPrinter printer;
  bool more = reader.next();
  if (!more && reader.state() == profile::TraceReader::State::kCorrupt) return {};
  std::printf("trace %u\n", profile::kTraceVersion);
  for (; more; more = reader.next()) {
    const std::string text = printer.print(reader.event());
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  const auto ull = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  if (reader.skipped() != 0) {
    std::printf("skipped %llu of an unknown type or version\n", ull(reader.skipped()));
  }
  const bool whole =
      reader.state() == profile::TraceReader::State::kComplete && reader.damaged() == 0;
  if (whole) {
    std::printf("end events %llu dropped %llu\n", ull(reader.events()), ull(reader.dropped()));
  }
  return reader.damages();
}

// The same as lines of JSON; the last one says how the file ends.
std::vector<std::string> print_event_lines(std::span<const std::byte> bytes) {
  profile::TraceReader reader(bytes, profile::TraceReader::OnDamage::kResume);
  EventJson events;
  auto print = [](const nlohmann::ordered_json& j) {
    std::puts(j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  };
  while (reader.next()) print(events.of(reader.event()));
  const bool complete = reader.state() == profile::TraceReader::State::kComplete;
  nlohmann::ordered_json end = {{"event", "end"},
                                {"complete", complete && reader.damaged() == 0},
                                {"events", reader.events()},
                                {"skipped", reader.skipped()},
                                {"damaged", reader.damaged()}};
  if (complete) end["dropped"] = reader.dropped();
  print(end);
  return reader.damages();
}

}  // namespace

int trace_dump(const std::string& file, bool json) {
  std::vector<uint8_t> bytes;
  if (!read_bytes(file, bytes)) return kFailed;
  const auto all = std::as_bytes(std::span(bytes));
  const std::vector<std::string> damages = json ? print_event_lines(all) : print_events(all);
  Result<profile::TraceSummary> r = profile::validate(std::as_bytes(std::span(bytes)));
  // The first of them is what validation stops at.
  for (size_t i = 1; i < damages.size(); ++i) fail(kOk, file + ": " + damages[i]);
  return r ? int{kOk} : fail(kCorrupt, file + ": " + r.error().message);
}

int trace_validate(const std::string& file, bool json) {
  std::vector<uint8_t> bytes;
  if (!read_bytes(file, bytes)) return kFailed;
  Result<profile::TraceSummary> r = profile::validate(std::as_bytes(std::span(bytes)));
  if (!r) {
    if (json) print_json({{"file", file}, {"valid", false}, {"error", r.error().message}});
    return fail(kCorrupt, file + ": " + r.error().message);
  }
  if (json) {
    return print_json({{"file", file},
                       {"valid", true},
                       {"events", r->events},
                       {"methods", r->methods},
                       {"types", r->types},
                       {"descs", r->descs},
                       {"data", r->data},
                       {"flushes", r->flushes},
                       {"skipped", r->skipped},
                       {"dropped", r->dropped},
                       {"bytes", r->bytes}});
  }
  std::printf(
      "%s: valid; %llu events, %llu methods, %llu ids, %llu flushes, %llu dropped\n", file.c_str(),
      static_cast<unsigned long long>(r->events), static_cast<unsigned long long>(r->methods),
      static_cast<unsigned long long>(r->descs), static_cast<unsigned long long>(r->flushes),
      static_cast<unsigned long long>(r->dropped));
  return kOk;
}

namespace {

// Reads a trace file and prints its problems on stderr. The undamaged events of a damaged file are read.
// Returns an exit code.
int read_profile(const std::string& file, TraceProfile& trace, uint64_t& damaged) {
  std::vector<uint8_t> bytes;
  if (!read_bytes(file, bytes)) return kFailed;
  Result<profile::TraceRead> t = profile::read_trace(std::as_bytes(std::span(bytes)));
  if (!t) return fail(kCorrupt, file + ": " + t.error().message);
  for (const std::string& what : t->warnings) fail(kOk, file + ": " + what);
  if (t->damaged > t->warnings.size()) {
    fail(kOk, file + ": " + std::to_string(t->damaged - t->warnings.size()) + " more of these");
  }
  trace = std::move(t->trace);
  damaged += t->damaged;
  return kOk;
}

}  // namespace

int trace_profile(const std::string& file, bool json) {
  TraceProfile trace;
  uint64_t damaged = 0;
  if (int code = read_profile(file, trace, damaged); code != kOk) return code;
  std::string text = json ? profile_json(trace) : to_text(trace.profile);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (trace.truncated) fail(kOk, file + ": the trace ends early; the profile has the part before");
  const std::pair<uint64_t, const char*> notes[] = {
      {trace.skipped, "events of an unknown kind or format were skipped"},
      {trace.lost, "events were lost by the runtime"}};
  for (const auto& [count, what] : notes) {
    if (count == 0) continue;
    std::fprintf(stderr, "uptier: %s: %llu: %s\n", file.c_str(),
                 static_cast<unsigned long long>(count), what);
  }
  for (const std::string& what : merge_messages(trace.report)) fail(kOk, file + ": " + what);
  return damaged == 0 ? int{kOk} : int{kCorrupt};
}

int trace_overlap(const std::string& a, const std::string& b, bool json) {
  if (Status s = check_stdin({a, b}); !s) return fail(kUsage, s.error().message);
  TraceProfile first, second;
  uint64_t damaged = 0;
  if (int code = read_profile(a, first, damaged); code != kOk) return code;
  if (int code = read_profile(b, second, damaged); code != kOk) return code;
  const OverlapReport r = compare(first.profile, second.profile);
  if (json) return print_json(overlap_json(r));
  print_overlap(r);
  return kOk;
}

void print_overlap(OverlapReport r) {
  std::printf("overlap %.6f; only in the first %.4f, only in the second %.4f, mismatched %.4f\n",
              r.program.value, r.program.only_a, r.program.only_b,
              r.program.mismatched_a + r.program.mismatched_b);
  for (const KindOverlap& k : r.kinds) {
    const std::string kind(slot_kind_name(k.kind));
    if (k.comparable()) {
      std::printf("  %-12s %.6f\n", kind.c_str(), k.overlap.value);
    } else {
      std::printf("  %-12s not observed in the %s\n", kind.c_str(), k.in_a ? "second" : "first");
    }
  }
  if (r.inlined) std::printf("  %-12s %.6f\n", "inlined", r.inlined->value);
  // A method contributes at most its greater share to the difference.
  std::sort(r.methods.begin(), r.methods.end(), [](const MethodOverlap& x, const MethodOverlap& y) {
    auto difference = [](const MethodOverlap& m) {
      return (1 - m.value) * std::max(m.share_a, m.share_b) + std::fabs(m.share_a - m.share_b);
    };
    return difference(x) > difference(y);
  });
  std::printf("%-28s %9s %9s %9s\n", "method", "overlap", "share a", "share b");
  for (size_t i = 0; i < std::min<size_t>(r.methods.size(), 10); ++i) {
    const MethodOverlap& m = r.methods[i];
    std::printf("%-28s %9.4f %9.4f %9.4f\n", shortened(m.name, 28).c_str(), m.value, m.share_a,
                m.share_b);
  }
}

}  // namespace uptier::tools
