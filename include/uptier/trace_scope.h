// trace_scope.h: trace points for C++: scopes that begin and end, and constructs with their source
// location. Includes everything of tracing.h; needs C++20.
//
//   static uptier::TracePoint point("sort");              // once: name, file, line, function
//   uptier::TraceScope scope(stream, UPTIER_TRACE_TASK, point);
#pragma once

#include <source_location>

#include "uptier/tracing.h"

namespace uptier {

// A construct of the program, at the place where this object is created. Make it static at a trace
// point: it requests its event when a tool first wants it, and keeps it. Thread: any.
class TracePoint {
 public:
  explicit TracePoint(const char* name,
                      std::source_location place = std::source_location::current()) noexcept
      : name_(name), place_(place) {}

  // Returns the event; null without a dispatcher.
  uptier_trace_event* event() noexcept {
    // Two threads may both request it: the dispatcher gives both the same event.
    uptier_trace_event* e = __atomic_load_n(&event_, __ATOMIC_ACQUIRE);
    if (e != nullptr) return e;
    uptier_trace_payload p = {};
    p.size = sizeof p;
    p.name = name_;
    p.file = place_.file_name();
    p.function = place_.function_name();
    p.line = place_.line();
    p.column = place_.column();
    e = uptier_trace->event(&p);
    __atomic_store_n(&event_, e, __ATOMIC_RELEASE);
    return e;
  }

 private:
  const char* name_;
  std::source_location place_;
  uptier_trace_event* event_ = nullptr;
};

// An activity that lasts as long as the scope: tools are told of its end on every path out of the
// scope, exceptions included. Costs one test if no tool wants it. `user_data` is passed to the
// begin; subscribers use it during that call only.
class TraceScope {
 public:
  TraceScope(uptier_trace_stream* stream, uint32_t kind, TracePoint& point,
             uptier_trace_event* parent = nullptr, const void* user_data = nullptr) noexcept
      : stream_(stream), kind_(kind) {
    if (!UPTIER_TRACE_ON(stream, UPTIER_TRACE_BEGIN(kind))) return;
    event_ = point.event();
    parent_ = parent;
    instance_ = uptier_trace->begin(stream, kind, parent, event_, user_data);
  }
  ~TraceScope() { end(); }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  // Ends the activity before the scope does.
  void end(const void* user_data = nullptr) noexcept {
    UPTIER_TRACE_LEAVE(stream_, kind_, parent_, event_, instance_, user_data);
    instance_ = 0;
  }
  // Returns the instance; 0 if no tool was told.
  uint64_t instance() const noexcept { return instance_; }
  // Hands over the end, and returns the instance, 0 if no tool was told. The receiver must call
  // uptier_trace->end with it, on any thread. Afterwards instance() is 0.
  uint64_t release() noexcept {
    const uint64_t instance = instance_;
    instance_ = 0;
    return instance;
  }

 private:
  uptier_trace_stream* stream_;
  uint32_t kind_;
  uptier_trace_event* parent_ = nullptr;
  uptier_trace_event* event_ = nullptr;
  uint64_t instance_ = 0;
};

}  // namespace uptier
