// uptier explain: a method's life, from the events of a run.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/event_file.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/life_text.h"
#include "tools/method_life.h"
#include "tools/nearest.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostNames = 5;  // in a message

// Names come from modules: what could steer a terminal is shown as '?'.
std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f) c = '?';
  }
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), kMostNames); ++i) {
    text += (i == 0 ? "" : ", ") + words[i];
  }
  return words.size() <= kMostNames
             ? text
             : text + " and " + std::to_string(words.size() - kMostNames) + " more";
}

// Returns the numbers of the methods that `wanted` names.
std::vector<uint32_t> found_in(const EventFile& file, const std::string& wanted) {
  std::vector<uint32_t> found;
  for (const auto& [number, name] : file.names) {
    if (name == wanted) found.push_back(number);
  }
  const int64_t number = method_number(wanted);
  const bool has_events = !file.events.empty();
  if (found.empty() && number >= 0 && has_events) found.push_back(static_cast<uint32_t>(number));
  return found;
}

int fail_unknown(const ExplainCommand& c, const EventFile& file) {
  std::vector<std::string> all, containing;
  for (const auto& [number, name] : file.names) {
    all.push_back(name);
    if (name.find(c.method) != name.npos) containing.push_back(name);
  }
  std::string hint = did_you_mean(c.method, all);
  if (hint.empty() && !containing.empty()) hint = "; these contain it: " + joined(containing);
  return fail(kFailed, c.file + ": no events of a method " + printable(c.method + hint));
}

int fail_ambiguous(const ExplainCommand& c, const std::vector<uint32_t>& found) {
  std::vector<std::string> numbers;
  for (const uint32_t n : found) numbers.push_back("#" + std::to_string(n));
  return fail(kFailed, c.file + ": " + std::to_string(found.size()) + " methods are called " +
                           printable(c.method) + "; name one by its number: " + joined(numbers));
}

ordered_json event_json(const LifeStep& s, const EventFile& file) {
  const MethodEvent& e = s.event;
  ordered_json j = {{"ns", s.first_ns}, {"what", e.what}, {"text", step_text(s, file)}};
  if (s.times != 1) {
    j["times"] = s.times;
    j["last_ns"] = s.last_ns;
  }
  if (e.ended_ns != e.begun_ns) j["duration_ns"] = e.ended_ns - e.begun_ns;
  j["thread"] = e.thread;
  if (e.version != 0) j["version"] = e.version;
  const char* relation = e.what == "install" ? "replaces" : e.what == "deopt" ? "to" : "from";
  if (e.other_version != 0) j[relation] = e.other_version;
  if (!e.inlined.empty()) j["inlined"] = e.inlined;
  if (!e.source.empty()) j["source"] = e.source;
  if (!e.body.empty()) j["body"] = e.body;
  if (!e.action.empty()) j["action"] = e.action;
  if (!e.reason.empty()) j["reason"] = e.reason;
  return j;
}

ordered_json version_json(const LifeVersion& v) {
  ordered_json j = {{"version", v.number},
                    {"tier", v.tier},
                    {"instrumented", v.instrumented},
                    {"bytes", v.bytes},
                    {"compile_ns", v.compile_ns},
                    {"installed_ns", v.installed_ns},
                    {"in_service", v.in_service}};
  if (v.loop >= 0) j["loop"] = v.loop;
  return j;
}

int print_life_json(const MethodLife& life, const EventFile& file, uint32_t number,
                    const std::string& name) {
  ordered_json j = {{"method", number}, {"name", name}};
  j["steps"] = ordered_json::array();
  for (const LifeStep& s : life.steps) j["steps"].push_back(event_json(s, file));
  j["versions"] = ordered_json::array();
  for (const auto& [serial, v] : life.versions) j["versions"].push_back(version_json(v));
  j["removed"] = life.removed;
  j["exits"] = life.exits;
  j["ended_ns"] = file.ended_ns;
  j["lost"] = file.lost;
  return print_json(j);
}

}  // namespace

int explain(const ExplainCommand& c) {
  std::vector<uint8_t> bytes;
  if (!read_file(c.file, bytes)) return kFailed;
  Result<EventFile> file = read_events(c.file, bytes, c.method);
  if (!file) return fail(file.error());
  const std::vector<uint32_t> found = found_in(*file, c.method);
  if (found.empty()) return fail_unknown(c, *file);
  if (found.size() > 1) return fail_ambiguous(c, found);
  if (file->cut_short) fail(kOk, c.file + ": the last line is incomplete and was left out");
  if (file->lost != 0) {
    fail(kOk, c.file + ": the runtime lost " + std::to_string(file->lost) +
                  " events, so parts of the life may be missing");
  }
  std::erase_if(file->events, [&](const MethodEvent& e) { return e.method != found[0]; });
  const MethodLife life = life_of(file->events);
  const auto name = file->names.find(found[0]);
  const std::string known = name == file->names.end() ? "" : name->second;
  if (c.json) return print_life_json(life, *file, found[0], known);
  const std::string title =
      (known.empty() ? "method " : known + ", method ") + "#" + std::to_string(found[0]);
  std::fputs(printable(life_text(life, *file, title)).c_str(), stdout);
  return kOk;
}

}  // namespace uptier::tools
