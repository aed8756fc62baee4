#include "tools/top_print.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

double part_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

template <typename... Args>
void append_line(std::string& out, const char* format, Args... args) {
  char line[256];
  const int n = std::snprintf(line, sizeof line, format, args...);
  out.append(line, static_cast<size_t>(std::clamp(n, 0, 255)));
}

// The kind of code in which a method spent most of the time.
std::string code_text(const TopRow& r) {
  const TopCode& c = r.code.front();
  if (r.method.place != TimePlace::kMethod) return "";
  if (c.tier == Tier::kHost) return "stub";
  std::string text = tier_name(c.tier);
  if (c.copy == Copy::kInstrumented) text += c.tier == Tier::kOptimized ? " instr." : " counting";
  if (c.osr) text += "@loop";
  if (c.inlined) text += ", inlined";
  return text;
}

const char* state_text(const TopRow& r) {
  return r.method.place == TimePlace::kMethod ? compile_state_name(r.method.state) : "";
}

size_t shown_of(const TopTable& t, uint64_t most) {
  return most == 0 ? t.rows.size() : std::min<size_t>(t.rows.size(), most);
}

ordered_json code_json(const TopCode& c) {
  return {{"tier", tier_name(c.tier)},
          {"copy", copy_name(c.copy)},
          {"at_loop", c.osr},
          {"inlined", c.inlined},
          {"samples", c.sums.samples},
          {"ns", c.sums.ns},
          {"total_samples", c.sums.all_samples},
          {"total_ns", c.sums.all_ns}};
}

ordered_json row_json(const TopTable& t, const TopRow& r) {
  ordered_json j = {{"name", r.method.name}};
  if (r.method.place == TimePlace::kMethod) {
    j["module_key"] = r.method.key.module_key;
    j["function_index"] = r.method.key.function_index;
    j["tier"] = tier_name(r.code.front().tier);
    j["calls_run"] = tier_name(r.method.serves);
    j["state"] = compile_state_name(r.method.state);
  } else {
    j["place"] = time_place_name(r.method.place);
  }
  const ShareEstimate share = t.share(r);
  j["share"] = share.share;
  j["low"] = share.low;
  j["high"] = share.high;
  j["samples"] = r.sums.samples;
  j["ns"] = r.sums.ns;
  j["total_share"] = part_of(r.sums.all_ns, t.sums.all_ns);
  j["total_samples"] = r.sums.all_samples;
  j["total_ns"] = r.sums.all_ns;
  if (r.method.place != TimePlace::kMethod) return j;
  ordered_json code = ordered_json::array();
  for (const TopCode& c : r.code) code.push_back(code_json(c));
  j["code"] = std::move(code);
  return j;
}

}  // namespace

std::string top_text(const TopTable& t, uint64_t most) {
  std::string out;
  append_line(out, "process %llu, %.1f s old: %llu samples stand for %.1f ms of %.1f s",
              static_cast<unsigned long long>(t.now.process),
              static_cast<double>(t.now.age_ns) / 1e9,
              static_cast<unsigned long long>(t.sums.samples), static_cast<double>(t.sums.ns) / 1e6,
              static_cast<double>(t.ns) / 1e9);
  append_line(out, ", %llu dropped; %llu compilations wait; %.1f KiB of code\n",
              static_cast<unsigned long long>(t.dropped),
              static_cast<unsigned long long>(t.now.waiting),
              static_cast<double>(t.now.code_bytes) / 1024);
  if (t.now.hz == 0) {
    out += "its stacks are not sampled now: start it with --sample, or set its option sample_hz\n";
  }
  append_line(out, "%8s %17s %8s %9s %9s  %-26s %-8s %s\n", "time", "95 % interval", "samples",
              "total", "samples", "tier", "state", "method");
  const size_t shown = shown_of(t, most);
  for (size_t i = 0; i < shown; ++i) {
    const TopRow& r = t.rows[i];
    const ShareEstimate share = t.share(r);
    append_line(
        out, "%6.2f %%  %6.2f - %6.2f %% %8llu %7.2f %% %9llu  %-26s %-8s ", 100 * share.share,
        100 * share.low, 100 * share.high, static_cast<unsigned long long>(r.sums.samples),
        100 * part_of(r.sums.all_ns, t.sums.all_ns),
        static_cast<unsigned long long>(r.sums.all_samples), code_text(r).c_str(), state_text(r));
    out += r.method.name + "\n";
  }
  if (shown < t.rows.size()) append_line(out, "... and %zu more rows\n", t.rows.size() - shown);
  return out;
}

std::string top_line(const TopTable& t, uint64_t most) {
  ordered_json methods = ordered_json::array();
  const size_t shown = shown_of(t, most);
  for (size_t i = 0; i < shown; ++i) methods.push_back(row_json(t, t.rows[i]));
  const ordered_json j = {{"process", t.now.process},
                          {"age_ns", t.now.age_ns},
                          {"interval_ns", t.ns},
                          {"sample_hz", t.now.hz},
                          {"samples", t.sums.samples},
                          {"sampled_ns", t.sums.ns},
                          {"asked_ns", t.asked_ns},
                          {"dropped", t.dropped},
                          {"total_samples", t.sums.all_samples},
                          {"total_sampled_ns", t.sums.all_ns},
                          {"compilations_waiting", t.now.waiting},
                          {"code_bytes", t.now.code_bytes},
                          {"rows", t.rows.size()},
                          {"methods", std::move(methods)}};
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace uptier::tools
