// events.h: the constructs of a program, each with a unique id.
//
// The key of a construct is (file, function, line, column) with both texts interned: 128 bits that
// are compared in full, so two constructs never share an id. A construct without file and function
// has no key, and is new each time.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "tracing/dispatcher/tables.h"
#include "uptier/thread_safety.h"

struct uptier_trace_event {
  uint64_t id = 0;
  uptier_trace_string name = 0, file = 0, function = 0;
  uint32_t line = 0, column = 0;
  const void* address = nullptr;
  std::atomic<uint64_t> instances = 1;
  uptier::CheckedLock<std::mutex> mutex;
  // By ascending key.
  std::vector<std::pair<uptier_trace_string, uptier_trace_value>> metadata UPTIER_GUARDED_BY(mutex);
};

namespace uptier::tracing {

// Thread: any. Making takes a lock and may allocate; reading by id or pointer does neither.
class Events {
 public:
  explicit Events(Strings& strings) : strings_(strings) {}

  // Throws std::bad_alloc.
  uptier_trace_event* make(const uptier_trace_payload& payload);
  uptier_trace_event* find(uint64_t id) const noexcept;
  void payload(const uptier_trace_event& event, uptier_trace_payload& out) const noexcept;

  static void set_metadata(uptier_trace_event& event, uptier_trace_string key,
                           const uptier_trace_value& value);
  // Visits a copy, so the visitor may set metadata.
  static void each_metadata(const uptier_trace_event& event, uptier_trace_visitor visit,
                            void* user);

 private:
  using Key = std::tuple<uptier_trace_string, uptier_trace_string, uint32_t, uint32_t>;

  Strings& strings_;
  CheckedLock<std::mutex> mutex_;
  std::map<Key, uptier_trace_event*> by_key_ UPTIER_GUARDED_BY(mutex_);
  Chunked<std::unique_ptr<uptier_trace_event>> events_;
};

}  // namespace uptier::tracing
