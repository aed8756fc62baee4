#include "tracing/subscribers/tool.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <new>

namespace uptier::tracing {
namespace {

std::unique_ptr<Tool> tool;

const uptier_trace_api* api_of_tool;

void lose_for_memory(const char* what) {
  api_of_tool->lost(1);
  api_of_tool->say(what);
}

// The program is not to die of a tool without memory.
void tell(void* user, const uptier_trace_record* record) {
  try {
    static_cast<Tool*>(user)->tell(*record);
  } catch (const std::bad_alloc&) {
    static std::atomic<bool> has_said = false;
    api_of_tool->lost(1);
    if (!has_said.exchange(true)) api_of_tool->say("a tool loses events: out of memory");
  }
}

void on_stream(void* user, uptier_trace_stream* stream, const char* name, uint32_t major,
               uint32_t minor) {
  auto& it = *static_cast<Tool*>(user);
  bool all = true;
  try {
    it.meet(stream, name, major, minor);
    for (uint32_t kind = 1; kind < UPTIER_TRACE_KINDS; ++kind) {
      if (it.wants(stream, kind)) all &= api_of_tool->subscribe(stream, kind, tell, user) != 0;
    }
  } catch (const std::bad_alloc&) { all = false; }
  if (!all) lose_for_memory("a tool is not told of all events of a stream: out of memory");
}

// Returns the length of the UTF-8 character at the start of `s`, or 0 if there is none.
size_t character(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  const size_t n = first < 0x80                    ? 1
                   : first >= 0xC2 && first < 0xE0 ? 2
                   : first >= 0xE0 && first < 0xF0 ? 3
                   : first >= 0xF0 && first < 0xF5 ? 4
                                                   : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : n;
}

}  // namespace

void Tool::begin(const uptier_trace_api* api) {
  api_ = api_of_tool = api;
  if (api->listen(on_stream, this) == 0) {
    lose_for_memory("a tool is not told of all streams: out of memory");
  }
}

void Tool::end() {
  api_->unlisten(on_stream, this);
  api_->unsubscribe(nullptr, 0, uptier::tracing::tell, this);
  try {
    finish();
  } catch (const std::bad_alloc&) { lose_for_memory("the end of a trace is lost: out of memory"); }
}

std::string_view Tool::kind_name(uint32_t kind) const {
  const char* name = api_->kind_name(kind);
  return name != nullptr ? name : "?";
}

std::string Tool::event_name(const uptier_trace_event* event) const {
  uptier_trace_payload p = {};
  p.size = sizeof p;
  if (event == nullptr || api_->event_payload(event, &p) == 0) return "";
  if (p.name != nullptr) return p.name;
  if (p.function != nullptr) return p.function;
  return "#" + std::to_string(api_->event_id(event));
}

std::string Tool::metadata_text(const uptier_trace_event* e) const {
  struct Visit {
    const Tool* tool;
    std::string text = "{";
  } visit{this};
  api_->each_metadata(
      e,
      [](void* user, uptier_trace_string key, const uptier_trace_value* value) {
        auto& v = *static_cast<Visit*>(user);
        const char* name = v.tool->api().string_text(key);
        if (v.text.size() > 1) v.text += ",";
        v.text += json_text(name != nullptr ? name : "?") + ":" + v.tool->value_text(*value);
        return 1;
      },
      &visit);
  return visit.text + "}";
}

std::string Tool::value_text(const uptier_trace_value& v) const {
  char number[40];
  switch (v.kind) {
    case UPTIER_TRACE_INT: return std::to_string(v.as.integer);
    case UPTIER_TRACE_REAL:
      if (!std::isfinite(v.as.real)) return "null";  // JSON has neither infinities nor NaN
      std::snprintf(number, sizeof number, "%.17g", v.as.real);
      return number;
    case UPTIER_TRACE_STRING: {
      const char* text = api_->string_text(v.as.string);
      return text != nullptr ? json_text(text) : "null";
    }
    default: return "{\"object\":" + std::to_string(v.as.object) + "}";
  }
}

uint64_t time_of(const uptier_trace_record& r) {
  if (r.size >= sizeof r && r.at_ns != 0) return r.at_ns;
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t thread_of(const uptier_trace_record& r) {
  if (r.size >= sizeof r && r.thread != 0) return r.thread;
  __attribute__((tls_model("initial-exec"))) static thread_local uint64_t id = 0;
  if (id == 0) id = static_cast<uint64_t>(::syscall(SYS_gettid));
  return id;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t n = character(text);
    const char c = text[0];
    if (n == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out + '"';
}

}  // namespace uptier::tracing

extern "C" {

__attribute__((visibility("default"))) int uptier_trace_subscriber_init(const uptier_trace_api* api,
                                                                        const char* arguments) {
  using namespace uptier::tracing;
  if (api->version != UPTIER_TRACE_VERSION || api->size < sizeof *api) return 0;
  try {
    tool = make_tool(api, arguments);
  } catch (const std::bad_alloc&) { api->say("a tool does not start: out of memory"); }
  if (tool == nullptr) return 0;
  tool->begin(api);
  return 1;
}

__attribute__((visibility("default"))) void uptier_trace_subscriber_finish() {
  using namespace uptier::tracing;
  tool->end();
  tool.reset();
}
}
