#include "tools/profile_top.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "profile/algebra/algebra.h"
#include "profile/data/text.h"
#include "tools/shortened.h"

namespace uptier::tools {
namespace {

struct Row {
  PathFrame frame;
  FrameTime time;
  const MethodProfile* method = nullptr;  // null for places, and methods without a profile
  long double executions = 0;
};

// The rows, hottest first.
class Ranking {
 public:
  explicit Ranking(const ProfileFile& file) : file_(file), time_(file.calls.time) {
    for (const auto& [frame, time] : time_.by_frame()) rows_.push_back({frame, time, nullptr, 0});
    std::set<MethodKey> timed;
    for (Row& r : rows_) {
      if (r.frame.place != TimePlace::kMethod) continue;
      timed.insert(r.frame.method);
      if (const MethodProfile* m = file.profile.find(r.frame.method)) count(r, *m);
    }
    for (const auto& [key, m] : file.profile.methods) {
      if (timed.contains(key)) continue;
      rows_.push_back({{TimePlace::kMethod, key}, {}, nullptr, 0});
      count(rows_.back(), m);
    }
    std::ranges::stable_sort(rows_, [](const Row& a, const Row& b) {
      if (a.time.own_ns != b.time.own_ns) return a.time.own_ns > b.time.own_ns;
      return a.executions > b.executions;
    });
  }

  std::vector<Row> first(uint64_t n) const {
    return {rows_.begin(),
            rows_.begin() + static_cast<int64_t>(std::min<uint64_t>(rows_.size(), n))};
  }
  bool has_time() const { return time_.sampled_ns != 0; }
  std::string name(const Row& r) const { return frame_name(file_.profile, r.frame); }
  ShareEstimate own(const Row& r) const { return time_.share(r.time.own_ns); }
  double all(const Row& r) const { return time_.share(r.time.all_ns).share; }
  double executions(const Row& r) const {
    return all_executions_ > 0 ? static_cast<double>(r.executions / all_executions_) : 0;
  }

 private:
  void count(Row& r, const MethodProfile& m) {
    r.method = &m;
    r.executions = profile::executions(m);
    all_executions_ += r.executions;
  }

  const ProfileFile& file_;
  const TimeProfile& time_;
  std::vector<Row> rows_;
  long double all_executions_ = 0;
};

unsigned long long ull(uint64_t n) { return n; }

uint64_t samples_of(const MethodProfile& m) { return m.sampled_calls + m.bursts; }

void print_counts(const Ranking& ranking, const Row& r) {
  const MethodProfile* m = r.method;
  if (m == nullptr) return std::puts(""), void();
  std::printf(" %7.2f%% %14.6Lg %12llu%s\n", 100 * ranking.executions(r), r.executions,
              ull(m->calls), m->behind ? "  behind" : "");
}

void print_by_time(const Ranking& ranking, const TimeProfile& time, uint64_t n) {
  std::printf("time      %.1f ms in samples, %.2f %% of the processor time\n",
              static_cast<double>(time.sampled_ns) / 1e6,
              time.asked_ns == 0 ? 0.0
                                 : 100 * static_cast<double>(time.sampled_ns) /
                                       static_cast<double>(time.asked_ns));
  std::printf("%-32s %8s %17s %8s %8s %14s %12s\n", "method", "time", "95 % interval", "total",
              "blocks", "executions", "calls");
  for (const Row& r : ranking.first(n)) {
    const ShareEstimate own = ranking.own(r);
    std::printf("%-32s %7.2f%%  %6.2f - %6.2f %% %7.2f%%", shortened(ranking.name(r), 32).c_str(),
                100 * own.share, 100 * own.low, 100 * own.high, 100 * ranking.all(r));
    print_counts(ranking, r);
  }
}

void print_by_executions(const Ranking& ranking, uint64_t n) {
  std::printf("%-32s %8s %14s %12s %12s\n", "method", "share", "executions", "calls", "samples");
  for (const Row& r : ranking.first(n)) {
    std::printf("%-32s %7.2f%% %14.6Lg %12llu %12llu%s\n", shortened(r.method->name, 32).c_str(),
                100 * ranking.executions(r), r.executions, ull(r.method->calls),
                ull(samples_of(*r.method)), r.method->behind ? "  behind" : "");
  }
}

nlohmann::ordered_json time_json(const Ranking& ranking, const Row& r) {
  const ShareEstimate own = ranking.own(r);
  return {{"share", own.share},        {"low", own.low},
          {"high", own.high},          {"ns", r.time.own_ns},
          {"samples", r.time.samples}, {"total_share", ranking.all(r)},
          {"total_ns", r.time.all_ns}};
}

}  // namespace

std::string frame_name(const Profile& names, const PathFrame& f) {
  if (f.place != TimePlace::kMethod) return "[" + std::string(time_place_name(f.place)) + "]";
  const MethodProfile* m = names.find(f.method);
  if (m != nullptr && !m->name.empty()) return m->name;
  return profile::hex(f.method.module_key) + ":" + std::to_string(f.method.function_index);
}

void print_top(const ProfileFile& file, uint64_t n) {
  const Ranking ranking(file);
  if (ranking.has_time()) {
    print_by_time(ranking, file.calls.time, n);
  } else {
    print_by_executions(ranking, n);
  }
  explain_behind(std::ranges::any_of(file.profile.methods,
                                     [](const auto& item) { return item.second.behind; }));
}

nlohmann::ordered_json top_json(const ProfileFile& file, uint64_t n) {
  const Ranking ranking(file);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& r : ranking.first(n)) {
    nlohmann::ordered_json j = {{"name", ranking.name(r)},
                                {"module_key", r.frame.method.module_key},
                                {"function_index", r.frame.method.function_index}};
    if (r.frame.place != TimePlace::kMethod) j["place"] = time_place_name(r.frame.place);
    if (const MethodProfile* m = r.method) {
      j["share"] = ranking.executions(r);
      j["executions"] = static_cast<double>(r.executions);
      j["behind"] = m->behind;
      j["calls"] = m->calls;
      j["samples"] = samples_of(*m);
    }
    if (ranking.has_time()) j["time"] = time_json(ranking, r);
    list.push_back(std::move(j));
  }
  return {{"methods", std::move(list)}};
}

void explain_behind(bool any) {
  if (any)
    std::puts("behind: ran in optimized code, which does not count; true numbers may be higher");
}

}  // namespace uptier::tools
