#include "tools/event_file.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

namespace uptier::tools {
namespace {

using nlohmann::json;

constexpr const char* kHowTo =
    "explain reads the lines that `uptier run --events FILE.jsonl` writes";

uint64_t number(const json& from, const char* key) { return from.value(key, uint64_t{0}); }

class Reader {
 public:
  Reader(const std::string& file, const std::string& wanted) : file_(file), wanted_(wanted) {}

  Result<EventFile> read(std::string_view text) {
    if (text.starts_with("{\"displayTimeUnit\"")) {
      return error("it is a trace for ui.perfetto.dev; " + std::string(kHowTo));
    }
    for (uint64_t n = 1; !text.empty(); ++n) {
      const size_t end = text.find('\n');
      const bool whole = end != text.npos;
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(whole ? end + 1 : text.size());
      if (read_line(line)) continue;
      if (whole) return error("line " + std::to_string(n) + " is not an event; " + kHowTo);
      read_.cut_short = true;
    }
    if (!any_task_) return error("it has no events of the stream uptier; " + std::string(kHowTo));
    for (const auto& [instance, event] : open_) keep(event);
    std::ranges::stable_sort(read_.events, {}, &MethodEvent::ended_ns);
    return std::move(read_);
  }

 private:
  Error error(const std::string& what) const {
    return {ErrorCode::kCorruptInput, file_ + ": " + what};
  }

  // Returns whether the line is an event.
  bool read_line(std::string_view line) try {
    const json j = json::parse(line);
    const uint64_t ns = j.at("ns").get<uint64_t>();
    const bool is_runtime = j.at("stream").get<std::string_view>() == "uptier";
    const auto phase = j.at("phase").get<std::string_view>();
    const bool is_task = is_runtime && j.at("kind").get<std::string_view>() == "task";
    any_task_ |= is_task;
    if (first_ns_ == 0) first_ns_ = ns;
    read_.ended_ns = std::max(read_.ended_ns, since_first(ns));
    if (!is_task) return true;
    if (phase == "begin") begin(j, ns);
    if (phase == "end") end(j.at("instance").get<uint64_t>(), ns);
    return true;
  } catch (const json::exception&) { return false; }

  // The file is in the order of delivery, so the first event need not be its first line.
  uint64_t since_first(uint64_t ns) const { return ns - std::min(ns, first_ns_); }

  void begin(const json& j, uint64_t ns) {
    const std::string task = j.at("event").at("name").get<std::string>();
    const uint64_t thread = j.at("thread").get<uint64_t>();
    if (task == "pause") read_.workers.insert(thread);
    const auto found = j.find("metadata");
    const json m = found == j.end() ? json::object() : *found;
    read_.lost += number(m, "lost");
    if (!m.contains("method")) return;
    const auto method = m.at("method").get<uint32_t>();
    if (m.contains("name")) read_.names[method] = m.at("name").get<std::string>();
    if (!is_wanted(method)) return;
    MethodEvent e;
    e.what = task.substr(0, task.size() - std::min(task.size(), suffix(task, method).size()));
    e.method = method;
    e.begun_ns = e.ended_ns = since_first(ns);
    e.thread = thread;
    e.sequence = number(m, "sequence");
    e.version = number(m, "version");
    e.other_version = number(m, "from") + number(m, "to") + number(m, "replaces");
    e.tier = m.value("tier", "");
    e.instrumented = m.value("copy", "") == "instrumented";
    e.loop = m.value("loop", int64_t{-1});
    e.bytes = number(m, "bytes");
    e.count = number(m, "inlined") + number(m, "number") + number(m, "exit") + number(m, "calls");
    e.source = m.value("source", "");
    e.body = m.value("of inlined", "");
    e.inlined = m.value("inlined methods", "");
    e.action = m.value("action", "");
    e.reason = m.value("reason", "");
    open_[j.at("instance").get<uint64_t>()] = std::move(e);
  }

  void end(uint64_t instance, uint64_t ns) {
    const auto event = open_.find(instance);
    if (event == open_.end()) return;
    event->second.ended_ns = since_first(ns);
    keep(event->second);
    open_.erase(event);
  }

  void keep(const MethodEvent& e) { read_.events.push_back(e); }

  bool is_wanted(uint32_t method) const {
    const auto name = read_.names.find(method);
    return method_number(wanted_) == method ||
           (name != read_.names.end() && name->second == wanted_);
  }

  // Returns the end of a task's name, after the activity: the method's name, or its number if the
  // event that named it was lost.
  std::string suffix(const std::string& task, uint32_t method) const {
    const auto name = read_.names.find(method);
    std::string number = " #" + std::to_string(method);
    if (task.ends_with(number)) return number;
    const std::string named = name == read_.names.end() ? "" : " " + name->second;
    return task.ends_with(named) ? named : "";
  }

  const std::string& file_;
  const std::string& wanted_;
  EventFile read_;
  std::map<uint64_t, MethodEvent> open_;  // by instance
  uint64_t first_ns_ = 0;
  bool any_task_ = false;
};

}  // namespace

Result<EventFile> read_events(const std::string& file, std::span<const uint8_t> bytes,
                              const std::string& wanted) {
  return Reader(file, wanted).read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

int64_t method_number(const std::string& text) {
  uint32_t n = 0;
  const char* const end = text.data() + text.size();
  if (text.size() < 2 || text[0] != '#') return -1;
  const auto [after, error] = std::from_chars(text.data() + 1, end, n);
  return error == std::errc() && after == end ? int64_t{n} : -1;
}

}  // namespace uptier::tools
