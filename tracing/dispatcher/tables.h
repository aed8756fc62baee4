// tables.h: strings and objects that have an id, the same for equal contents, for the process's life.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracing/dispatcher/chunked.h"
#include "uptier/thread_safety.h"
#include "uptier/tracing.h"

namespace uptier::tracing {

// Thread: any. Interning takes a lock and may allocate; reading does neither.
class Strings {
 public:
  // Returns 0 for null. Throws std::bad_alloc.
  uptier_trace_string intern(const char* text);
  // Returns null for an unknown id.
  const char* text(uptier_trace_string id) const noexcept;

 private:
  CheckedLock<std::mutex> mutex_;
  std::unordered_map<std::string_view, uptier_trace_string> ids_
      UPTIER_GUARDED_BY(mutex_);  // views of the strings in texts_
  Chunked<std::unique_ptr<std::string>> texts_;
};

// Thread: as for Strings.
class Objects {
 public:
  uptier_trace_object intern(std::string_view bytes, uint32_t kind);
  // Returns whether the object exists; null pointers receive nothing.
  bool find(uptier_trace_object id, const void** bytes, size_t* size,
            uint32_t* kind) const noexcept;

 private:
  struct Object {
    uint32_t kind = 0;
    std::string bytes;
  };
  CheckedLock<std::mutex> mutex_;
  std::map<std::pair<uint32_t, std::string_view>, uptier_trace_object> ids_
      UPTIER_GUARDED_BY(mutex_);
  Chunked<std::unique_ptr<Object>> objects_;
};

}  // namespace uptier::tracing
