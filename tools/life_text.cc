#include "tools/life_text.h"

#include <cstdio>

#include "tiering/policy/duration_text.h"

namespace uptier::tools {
namespace {

std::string with_commas(uint64_t n) {
  std::string text = std::to_string(n);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string counted(uint64_t n, const std::string& noun) {
  return with_commas(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string ms(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e6);
  return text;
}

std::string took(const MethodEvent& e) {
  return duration_text(static_cast<double>(e.ended_ns - e.begun_ns));
}

std::string thread_text(uint64_t thread, const EventFile& file) {
  return (file.workers.contains(thread) ? "the worker, thread " : "thread ") +
         std::to_string(thread);
}

std::string version_text(uint64_t version) { return "version " + std::to_string(version); }

// " (sort.c:12)"
std::string at_source(const std::string& source) {
  return source.empty() ? "" : " (" + source + ")";
}

// "instrumented baseline code, entered at loop 2"
std::string code_text(const std::string& tier, bool instrumented, int64_t loop,
                      const std::string& source = "") {
  std::string text = (instrumented ? "instrumented " : "") + tier + " code";
  if (loop >= 0) text += " that is entered at loop " + std::to_string(loop) + at_source(source);
  return text;
}

std::string because(const MethodEvent& e) { return e.reason.empty() ? "" : ": " + e.reason; }

std::string compiled_text(const MethodEvent& e, const EventFile& file) {
  std::string text = version_text(e.version) + " was compiled in " + took(e) + " on " +
                     thread_text(e.thread, file) + ": " + with_commas(e.bytes) + " bytes of " +
                     code_text(e.tier, e.instrumented, e.loop, e.source);
  if (e.count == 0) return text;
  text += ", with " + counted(e.count, "call") + " inlined";
  return e.inlined.empty() ? text : text + ": " + e.inlined;
}

std::string decided_text(const MethodEvent& e) {
  const auto is = [&](const char* action) { return e.action.starts_with(action); };
  const size_t osr = e.action.find(" osr:");
  const std::string where = osr == e.action.npos ? ""
                                                 : " for loop " + e.action.substr(osr + 5) +
                                                       " of it" + at_source(e.source);
  const std::string what = is("recompile")       ? "the policy requested optimized code" + where
                           : is("specialize")    ? "the policy requested specialized code" + where
                           : is("roll_back")     ? "the policy took a version back" + where
                           : is("re_instrument") ? "it is observed again" + where
                           : is("ban")           ? "the policy gave a guess up for good" + where
                           : is("match")         ? "a profile of other code was matched with it"
                           : is("drop")    ? "the saved profile is of other code and was dropped"
                           : is("osr_out") ? "a frame runs older code than there is"
                           : is("find")    ? "a stack sample was in it for the first time"
                                           : "decision \"" + e.action + "\"";
  const bool names_exit = osr == e.action.npos && !e.source.empty();
  return what + because(e) + (names_exit ? ", at " + e.source : "");
}

// "; 3 times in all, the last at 8.100 ms"
std::string again_text(const LifeStep& s) {
  if (s.times == 1) return "";
  return "; " + with_commas(s.times) + " times in all, the last at " + ms(s.last_ns) + " ms";
}

std::string watched_text(const LifeStep& s) {
  const uint64_t flushes = s.times - s.decisions;
  std::string text;
  if (flushes != 0) {
    text = "its counts were read " + counted(flushes, "time") + " (" +
           counted(s.event.count, "call") + " so far)";
  }
  if (s.decisions != 0) {
    text += (text.empty() ? "" : ", and ") + std::string("the policy kept it as it is") +
            (s.decisions == 1 ? "" : " " + counted(s.decisions, "time")) + because(s.event);
  }
  return s.times == 1 ? text : text + "; until " + ms(s.last_ns) + " ms";
}

std::string entered_text(const MethodEvent& e) {
  std::string text = "a frame";
  if (e.other_version != 0) text += " that ran " + version_text(e.other_version);
  text += " went on in " + version_text(e.version) + " [" + e.tier + "]";
  return e.loop < 0 ? text : text + ", at loop " + std::to_string(e.loop) + at_source(e.source);
}

// "; frames left optimized code 1,201 times: 1,200 value, 1 type"
std::string exits_text(const MethodLife& life) {
  uint64_t all = 0;
  std::string reasons;
  for (const auto& [reason, times] : life.exits) {
    all += times;
    reasons += (reasons.empty() ? ": " : ", ") + with_commas(times) + " " + reason;
  }
  return "; frames left optimized code " + counted(all, "time") + reasons;
}

}  // namespace

std::string step_text(const LifeStep& s, const EventFile& file) {
  const MethodEvent& e = s.event;
  const std::string version = version_text(e.version);
  if (s.watched) return watched_text(s);
  if (e.what == "add") return "it was added";
  if (e.what == "describe")
    return "its host described it in " + took(e) + " on " + thread_text(e.thread, file) +
           (e.source.empty() ? "" : "; it begins at " + e.source);
  if (e.what == "compile") return compiled_text(e, file);
  if (e.what == "compile failed") return "it could not be compiled" + because(e);
  if (e.what == "compile refused") return "there was no room to compile it" + because(e);
  if (e.what == "compile dropped") return "a request to compile it was dropped: the queue was full";
  if (e.what == "install") {
    const std::string before = version_text(e.other_version);
    return version + " came into service" + (e.other_version == 0 ? "" : " after " + before);
  }
  if (e.what == "first call")
    return "it was called for the first time: first call " + with_commas(e.count) +
           " of the program";
  if (e.what == "OSR in" || e.what == "OSR out") return entered_text(e) + again_text(s);
  if (e.what == "deopt")
    return "a frame left " + version +
           (e.other_version == 0 ? "" : " for " + version_text(e.other_version)) + " at exit " +
           std::to_string(e.count) + (e.body.empty() ? "" : " of " + e.body + ", inlined") +
           at_source(e.source) + because(e) + again_text(s);
  if (e.what == "retire") return version + " went out of service";
  if (e.what == "reclaim")
    return "the memory of " + version + " was freed: " + with_commas(e.bytes) + " bytes";
  if (e.what == "move") return "the code of " + version + " was moved";
  if (e.what == "evict") return "it gave up its code to make room";
  if (e.what == "remove") return "it was removed" + (e.reason == "removed" ? "" : because(e));
  if (e.what == "forget") return (e.version == 0 ? "it" : version) + " left the report";
  if (e.what == "decide") return decided_text(e);
  return e.what + because(e);
}

std::string standing_text(const MethodLife& life, const EventFile& file) {
  std::string text = "At the end (" + ms(file.ended_ns) + " ms) ";
  if (life.removed) return text + "it is removed, since " + ms(life.removed_ns) + " ms.\n";
  uint64_t in_service = 0;
  for (const auto& [number, v] : life.versions) {
    if (!v.in_service) continue;
    text += (in_service++ == 0 ? "" : ", and ") + version_text(number) +
            " is in service: " + code_text(v.tier, v.instrumented, v.loop) + ", since " +
            ms(v.installed_ns) + " ms";
  }
  if (in_service == 0) text += "no compiled code of it is in service";
  text += ".\nIt was compiled " + counted(life.compilations, "time");
  if (life.compilations != 0) text += ", in " + duration_text(static_cast<double>(life.compile_ns));
  return text + exits_text(life) + ".\n";
}

std::string life_text(const MethodLife& life, const EventFile& file, const std::string& title) {
  std::string text = title + ", times in milliseconds after the first event of the file\n\n";
  for (const LifeStep& s : life.steps) {
    char time[32];
    std::snprintf(time, sizeof time, "%12s  ", ms(s.first_ns).c_str());
    text += time + step_text(s, file) + "\n";
  }
  return text + "\n" + standing_text(life, file);
}

}  // namespace uptier::tools
