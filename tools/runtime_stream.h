// RuntimeStream: what a runtime does (uptier/events.h), told to tracing tools as the stream `uptier`.
//
//   graph   "tiering"; parent of all nodes, and of tasks that are of no version
//   node    a version of a method, "sum [optimized v28]" with its serial number; told when it has been
//           compiled
//   tasks   add, describe, compile, install, first call, OSR in, OSR out, deopt, retire, reclaim, move,
//           evict, flush, decide, remove, forget, save, pause (of the worker), and what failed; and
//           the parts of describe and compile, such as "verify" and "licm", without metadata
//   edges   "requested", from a decision to the compilation that it asked for; "inlined into", from
//           the first description of a method to a compilation that inlined it; "made", from a
//           compilation to the install of its version; "waits for", from the install to each entry
//           of a frame (OSR) into the version. The source ends before the target begins. What merely
//           relates two versions is in the metadata: "replaces" of an install, "to" of a deopt
//
// A task is named after its kind and its method. It has the time and the thread of the event, not of its
// delivery; events too short to measure have the length 0. Its metadata are the method's id and the
// version's serial number, as in reports and other tools, with tier, bytes and reason, and the place in
// the guest's sources ("source") of a described method, of a loop, and of the exit of a deopt. A task that
// lasts is reported when it is over, except for the worker's pauses.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "uptier/events.h"
#include "uptier/runtime.h"
#include "uptier/tracing.h"

namespace uptier::tools {

class RuntimeStream final : public EventSubscriber {
 public:
  // Subscribes, if a tool wants tasks. The runtime outlives it.
  explicit RuntimeStream(Runtime& runtime);
  // Unsubscribes when all that happened before has been told. Thread: as for Runtime::unsubscribe.
  ~RuntimeStream() override;
  RuntimeStream(const RuntimeStream&) = delete;
  RuntimeStream& operator=(const RuntimeStream&) = delete;

  void on_event(const Event& e) noexcept override;

 private:
  void tell(const Event& e);
  void tell_task(const Event& e, const char* what);
  void tell_node(const Event& e);
  void tell_phases(const Event& e, uptier_trace_event* parent, uint64_t begun_ns);
  // Tells the dependences of a task that has just been told, and began at `begun_ns`.
  void tell_edges(const Event& e, uptier_trace_event* task, uint64_t begun_ns);
  void tell_edge(const char* name, uptier_trace_event* source, uptier_trace_event* target,
                 const Event& e);
  uptier_trace_event* make(const std::string& name) const;
  uptier_trace_event* construct_of(const Event& e, const char* what);
  void set(uptier_trace_event* of, const char* key, const std::string& value) const;
  void set(uptier_trace_event* of, const char* key, uint64_t value) const;
  void describe(uptier_trace_event* task, const Event& e);
  void set_source(uptier_trace_event* of, MethodId m, uint32_t location);
  std::string inlined_text(const EventDetails& d) const;
  std::string name_of(MethodId m) const;

  Runtime& runtime_;
  uptier_trace_stream* stream_;
  bool subscribed_ = false;
  uptier_trace_event* graph_ = nullptr;
  // Subscribers are called one after another, so one thread at a time uses these members.
  std::map<MethodId, std::string> names_;
  std::map<uint64_t, uptier_trace_event*> nodes_;  // by serial number
  std::map<std::tuple<std::string_view, MethodId, uint64_t>, uptier_trace_event*> constructs_;
  struct Ended {
    uptier_trace_event* task;
    uint64_t at_ns;
  };
  std::map<MethodId, Ended> descriptions_;  // the first one of each method
  // Decisions whose compilation has not been told of, by method and loop.
  std::map<std::pair<MethodId, LoopId>, Ended> requests_;
  std::map<uint64_t, uptier_trace_event*> compilations_;  // not installed yet, by serial number
  std::map<uint64_t, Ended> installs_;                    // not freed yet, by serial number
  std::map<std::pair<MethodId, uint32_t>, std::string> sources_;  // positions that were asked for
  uptier_trace_event* pause_ = nullptr;
  uint64_t pausing_ = 0;  // the instance of a pause that lasts, which ends with this at the latest
  uint64_t pausing_thread_ = 0;
};

}  // namespace uptier::tools
