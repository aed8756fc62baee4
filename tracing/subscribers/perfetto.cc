// A trace for ui.perfetto.dev and chrome://tracing, in the JSON form that both import.
//
//   arguments   the file; none: uptier-trace.json
//
// An event with a duration is written when it ends: as one slice ("X") of the thread where it
// began, or, if it ended on another thread, as a pair ("b", "e") with its instance as id. Events
// that are still open at the end are written as begun ("B"). Events without a duration are marks
// ("i").
//
// An edge is a flow ("s", "f"), an arrow from the last slice of its source to the last slice of its
// target. An edge between constructs that have no slices yet is a mark, and so is one whose source
// ends after its target begins. A viewer finds the slices of a flow by thread and time, which no
// slice of length 0 contains: those are written as 1 ns long.
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "tracing/subscribers/output.h"
#include "tracing/subscribers/tool.h"
#include "uptier/thread_safety.h"

namespace uptier::tracing {
namespace {

// When and where a construct was last under way.
struct Slice {
  uint64_t begun_ns;
  uint64_t ended_ns;
  uint64_t thread;
};

struct Open {
  uint64_t ns;
  uint64_t thread;
  std::string name;
  std::string category;
  std::string arguments;
};

class Perfetto final : public Tool {
 public:
  explicit Perfetto(std::unique_ptr<Output> out)
      : out_(std::move(out)), process_(std::to_string(::getpid())) {
    out_->append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", 0);
  }
  void finish() override {
    const Held lock(mutex_);
    for (const auto& [instance, open] : open_) write("B", open, open.ns, "");
    out_->append("\n]}\n", 0);
  }

  void tell(const uptier_trace_record& r) override {
    const Open now = {time_of(r), thread_of(r), name_of(r),
                      api().stream_name(r.stream, nullptr, nullptr), arguments_of(r)};
    const Held lock(mutex_);
    name_thread(r, now.thread);
    if (r.type == UPTIER_TRACE_BEGIN(UPTIER_TRACE_EDGE) && write_flow(r, now)) return;
    if (r.instance == 0) return write("i", now, now.ns, ",\"s\":\"t\"");
    if ((r.type & 1) == 0) return void(open_.insert_or_assign(r.instance, now));
    const auto at = open_.find(r.instance);
    if (at == open_.end()) return;
    const Open begun = std::move(at->second);
    open_.erase(at);
    if (begun.thread == now.thread) {
      const uint64_t ended = std::max(now.ns, begun.ns + 1);
      if (r.event != nullptr) last_[r.event] = {begun.ns, ended, begun.thread};
      return write("X", begun, begun.ns, ",\"dur\":" + us(ended - begun.ns));
    }
    const std::string id = ",\"id\":\"" + std::to_string(r.instance) + "\"";
    write("b", begun, begun.ns, id);
    Open end = begun;
    end.thread = now.thread;
    write("e", end, now.ns, id);
  }

 private:
  static std::string us(uint64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%llu.%03u", static_cast<unsigned long long>(ns / 1000),
                  static_cast<unsigned>(ns % 1000));
    return text;
  }

  std::string name_of(const uptier_trace_record& r) const {
    std::string name = event_name(r.event);
    if (!name.empty()) return name;
    if (r.type >> 1 == UPTIER_TRACE_ARGUMENTS && r.user_data != nullptr) {
      const char* function = static_cast<const uptier_trace_arguments*>(r.user_data)->function;
      if (function != nullptr) return function;
    }
    const bool is_text =
        (r.type >> 1 == UPTIER_TRACE_FUNCTION || r.type >> 1 == UPTIER_TRACE_THREAD) &&
        r.user_data != nullptr;
    if (is_text) return static_cast<const char*>(r.user_data);
    return std::string(kind_name(r.type >> 1));
  }

  std::string arguments_of(const uptier_trace_record& r) const {
    std::string text = "{\"kind\":" + json_text(kind_name(r.type >> 1));
    if (r.event != nullptr) text += ",\"id\":" + std::to_string(api().event_id(r.event));
    if (r.parent != nullptr) text += ",\"parent\":" + std::to_string(api().event_id(r.parent));
    if (r.instance != 0) text += ",\"instance\":" + std::to_string(r.instance);
    const std::string metadata = r.event == nullptr ? "{}" : metadata_text(r.event);
    if (metadata != "{}") text += ",\"metadata\":" + metadata;
    return text + "}";
  }

  void name_thread(const uptier_trace_record& r, uint64_t thread) UPTIER_REQUIRES(mutex_) {
    if (r.type != UPTIER_TRACE_BEGIN(UPTIER_TRACE_THREAD) || r.user_data == nullptr) return;
    if (!named_.insert(thread).second) return;
    write_text("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + process_ +
               ",\"tid\":" + std::to_string(thread) +
               ",\"args\":{\"name\":" + json_text(static_cast<const char*>(r.user_data)) + "}}");
  }

  // Returns whether both ends of the edge have slices, in this order.
  bool write_flow(const uptier_trace_record& r, const Open& edge) UPTIER_REQUIRES(mutex_) {
    const auto source = last_.find(r.parent), target = last_.find(r.event);
    if (source == last_.end() || target == last_.end()) return false;
    if (source->second.ended_ns - 1 > target->second.begun_ns) return false;
    Open end = edge;
    const auto* name = static_cast<const char*>(r.user_data);
    end.name = name != nullptr ? name : "edge";
    const std::string id = ",\"id\":" + std::to_string(++flows_);
    end.thread = source->second.thread;
    write("s", end, source->second.ended_ns - 1, id);
    end.thread = target->second.thread;
    write("f", end, target->second.begun_ns, id + ",\"bp\":\"e\"");
    return true;
  }

  void write(const char* phase, const Open& o, uint64_t ns, const std::string& more)
      UPTIER_REQUIRES(mutex_) {
    write_text("{\"ph\":\"" + std::string(phase) + "\",\"name\":" + json_text(o.name) +
               ",\"cat\":" + json_text(o.category) + ",\"ts\":" + us(ns) + ",\"pid\":" + process_ +
               ",\"tid\":" + std::to_string(o.thread) + more + ",\"args\":" + o.arguments + "}");
  }
  void write_text(const std::string& text) UPTIER_REQUIRES(mutex_) {
    if (!first_) out_->append(",\n", 0);
    first_ = false;
    out_->append(text, 1);
  }

  const std::unique_ptr<Output> out_;
  const std::string process_;
  CheckedLock<std::mutex> mutex_;  // guards all below, and the order of the output
  std::unordered_map<uint64_t, Open> open_ UPTIER_GUARDED_BY(mutex_);
  std::set<uint64_t> named_ UPTIER_GUARDED_BY(mutex_);
  std::unordered_map<const uptier_trace_event*, Slice> last_ UPTIER_GUARDED_BY(mutex_);
  uint64_t flows_ UPTIER_GUARDED_BY(mutex_) = 0;
  bool first_ UPTIER_GUARDED_BY(mutex_) = true;
};

}  // namespace

std::unique_ptr<Tool> make_tool(const uptier_trace_api* api, const char* arguments) {
  auto out = Output::open(api, arguments, "uptier-trace.json");
  return out == nullptr ? nullptr : std::make_unique<Perfetto>(std::move(out));
}

}  // namespace uptier::tracing
