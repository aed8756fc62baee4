// storm.h: what the storms share: faults are counted, and the pairs of the stream "storm" are checked.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "uptier/trace_scope.h"

namespace uptier::test::storm {

inline std::atomic<uint64_t> faults{0};

inline void fault(const char* what) {
  if (faults.fetch_add(1) < 10) std::fprintf(stderr, "storm: %s\n", what);
}

// Checks the pairs of the stream "storm": each end is on the thread of its begin, inner ones first.
struct Nested {
  std::atomic<uint64_t> begun{0}, ended{0}, marks{0};

  static std::vector<uint64_t>& open() {
    static thread_local std::vector<uint64_t> instances;
    return instances;
  }
  static void tell(void* user, const uptier_trace_record* r) {
    auto& n = *static_cast<Nested*>(user);
    if (r->instance == 0) {
      n.marks.fetch_add(1, std::memory_order_relaxed);
    } else if ((r->type & 1) == 0) {
      n.begun.fetch_add(1, std::memory_order_relaxed);
      open().push_back(r->instance);
    } else {
      n.ended.fetch_add(1, std::memory_order_relaxed);
      if (open().empty() || open().back() != r->instance) return fault("an end without its begin");
      open().pop_back();
    }
  }
};

inline uptier_trace_stream* stream = nullptr;

// Makes the stream and checks it.
inline void begin(Nested& nested) {
  stream = uptier_trace->stream("storm", 1, 0);
  uptier_trace->subscribe(stream, UPTIER_TRACE_FUNCTION, Nested::tell, &nested);
  uptier_trace->subscribe(stream, UPTIER_TRACE_SIGNAL, Nested::tell, &nested);
}

// Ends tracing. Returns the exit code: 1 if a pair is not whole or an event is missing.
inline int end(const Nested& nested, uint64_t pairs, uint64_t marks) {
  std::printf("%llu pairs, %llu marks\n", static_cast<unsigned long long>(nested.begun.load()),
              static_cast<unsigned long long>(nested.marks.load()));
  if (nested.begun != pairs || nested.ended != pairs) fault("pairs are missing");
  if (nested.marks != marks) fault("marks are missing");
  if (uptier_trace_finish() != 0) fault("events were lost");
  return faults == 0 ? 0 : 1;
}

}  // namespace uptier::test::storm
