// tool.h: the common part of the subscribers that ship. They subscribe to every kind of every
// stream, unless they say otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "uptier/tracing.h"

namespace uptier::tracing {

// The one subscriber of its library. begin() subscribes to all streams, including later ones; end()
// unsubscribes. Thread: tell() is called on any thread, several at once.
class Tool {
 public:
  virtual ~Tool() = default;
  virtual void tell(const uptier_trace_record& record) = 0;
  // Called for each stream before anything of it is told; then whether it wants a kind of it.
  virtual void meet(const uptier_trace_stream*, const char* /* name */, uint32_t /* major */,
                    uint32_t /* minor */) {}
  virtual bool wants(const uptier_trace_stream*, uint32_t /* kind */) { return true; }

  void begin(const uptier_trace_api* api);
  void end();

 protected:
  const uptier_trace_api& api() const { return *api_; }
  // "task"; "?" for a kind without a name.
  std::string_view kind_name(uint32_t kind) const;
  // Returns a readable name of an event: its name, function or number.
  std::string event_name(const uptier_trace_event* event) const;
  // Return the event's metadata as a JSON object, and one value as JSON.
  std::string metadata_text(const uptier_trace_event* event) const;
  std::string value_text(const uptier_trace_value& value) const;

 private:
  const uptier_trace_api* api_ = nullptr;
};

// Makes the library's tool, or reports wrong arguments through `api` and returns null.
std::unique_ptr<Tool> make_tool(const uptier_trace_api* api, const char* arguments);

// Return the time and the thread of a record's event: a monotonic time in nanoseconds, and the
// system's number of the thread.
uint64_t time_of(const uptier_trace_record& r);
uint64_t thread_of(const uptier_trace_record& r);

// Returns a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace uptier::tracing
