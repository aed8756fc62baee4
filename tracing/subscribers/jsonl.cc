// Writes one line of JSON for each event, in order of arrival.
//
//   arguments   the file; none: uptier-trace.jsonl
//
//   {"ns":..,"thread":..,"stream":"..","kind":"task","phase":"begin|end|at","instance":..,
//    "event":{"id":..,"name":"..","file":"..","line":..,"column":..},"parent":ID,"text":".."}
//
// Unknown members are left out. Metadata of an event is written with "metadata" events, and with
// the begin of its tasks.
#include <mutex>

#include "tracing/subscribers/output.h"
#include "tracing/subscribers/tool.h"
#include "uptier/thread_safety.h"

namespace uptier::tracing {
namespace {

bool lasts(const uptier_trace_record& r) { return r.instance != 0; }

class Lines final : public Tool {
 public:
  explicit Lines(std::unique_ptr<Output> out) : out_(std::move(out)) {}

  void tell(const uptier_trace_record& r) override {
    std::string line = "{\"ns\":" + std::to_string(time_of(r)) +
                       ",\"thread\":" + std::to_string(thread_of(r)) +
                       ",\"stream\":" + json_text(api().stream_name(r.stream, nullptr, nullptr)) +
                       ",\"kind\":" + json_text(kind_name(r.type >> 1)) + ",\"phase\":" + phase(r);
    if (lasts(r)) line += ",\"instance\":" + std::to_string(r.instance);
    if (r.event != nullptr) line += ",\"event\":" + event_text(r.event);
    if (r.parent != nullptr) line += ",\"parent\":" + std::to_string(api().event_id(r.parent));
    if (const char* text = text_of(r)) line += ",\"text\":" + json_text(text);
    if (r.type >> 1 == UPTIER_TRACE_ARGUMENTS) line += arguments_text(r.user_data);
    if (r.type >> 1 == UPTIER_TRACE_METADATA || r.type == UPTIER_TRACE_BEGIN(UPTIER_TRACE_TASK)) {
      const std::string metadata = r.event == nullptr ? "{}" : metadata_text(r.event);
      if (metadata != "{}") line += ",\"metadata\":" + metadata;
    }
    line += "}\n";
    const Held lock(mutex_);
    out_->append(line, 1);
  }

 private:
  static const char* phase(const uptier_trace_record& r) {
    return !lasts(r) ? "\"at\"" : (r.type & 1) == 0 ? "\"begin\"" : "\"end\"";
  }
  // The kinds whose user data is a text have one.
  static const char* text_of(const uptier_trace_record& r) {
    const uint32_t kind = r.type >> 1;
    const bool is_text =
        kind == UPTIER_TRACE_FUNCTION || kind == UPTIER_TRACE_THREAD || kind == UPTIER_TRACE_EDGE;
    if (is_text) return static_cast<const char*>(r.user_data);
    if (kind != UPTIER_TRACE_ARGUMENTS || r.user_data == nullptr) return nullptr;
    return static_cast<const uptier_trace_arguments*>(r.user_data)->function;
  }

  std::string event_text(const uptier_trace_event* e) const {
    uptier_trace_payload p = {};
    p.size = sizeof p;
    api().event_payload(e, &p);
    std::string text = "{\"id\":" + std::to_string(api().event_id(e));
    if (p.name != nullptr) text += ",\"name\":" + json_text(p.name);
    if (p.file != nullptr) text += ",\"file\":" + json_text(p.file);
    if (p.function != nullptr) text += ",\"function\":" + json_text(p.function);
    if (p.line != 0) text += ",\"line\":" + std::to_string(p.line);
    if (p.column != 0) text += ",\"column\":" + std::to_string(p.column);
    return text + "}";
  }

  // The arguments of a function call, and the result once there is one.
  std::string arguments_text(const void* user_data) const {
    const auto* a = static_cast<const uptier_trace_arguments*>(user_data);
    if (a == nullptr) return "";
    std::string text = ",\"arguments\":[";
    for (uint32_t i = 0; i < a->count; ++i) {
      text += (i == 0 ? "" : ",") + value_text(a->arguments[i]);
    }
    text += "]";
    if (a->result != nullptr) text += ",\"result\":" + value_text(*a->result);
    return text;
  }

  const std::unique_ptr<Output> out_ UPTIER_POINTEE_GUARDED_BY(mutex_);
  CheckedLock<std::mutex> mutex_;
};

}  // namespace

std::unique_ptr<Tool> make_tool(const uptier_trace_api* api, const char* arguments) {
  auto out = Output::open(api, arguments, "uptier-trace.jsonl");
  return out == nullptr ? nullptr : std::make_unique<Lines>(std::move(out));
}

}  // namespace uptier::tracing
