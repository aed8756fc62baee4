// Requests: the compilation requests, and the flags of methods that have made one.
//
//   asked --> queued --pop--> compiled --done--> may be asked for again
//                  \--no room: dropped, counted--/
//
// Law: a method has at most one request for each of its versions. The flags of that
// (Method::optimized_requested, Method::copy_asked, MethodShape::osr_requested, ...) are set here
// when the request is queued, or earlier by the thread that asked; they are cleared here when the
// request ends, in whatever way.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <optional>

#include "tiering/base/state_lock.h"
#include "tiering/compile/compile_queue.h"
#include "tiering/events/events.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

class Requests {
 public:
  Requests(size_t capacity, const MethodTable& methods, Events& events)
      : queue_(capacity), methods_(methods), events_(events) {}

  // Queues a request; does nothing for a removed method.
  void add(Method& m, const Plan& plan, double priority) UPTIER_REQUIRES(state_lock);
  // The request has ended, in whatever way.
  void done(Method& m, const Plan& plan) UPTIER_REQUIRES(state_lock);
  // Removes the requests of a method.
  void remove(MethodId m) UPTIER_REQUIRES(state_lock) { queue_.remove(m); }

  std::optional<Plan> pop() UPTIER_REQUIRES(state_lock) { return queue_.pop(); }
  size_t size() const UPTIER_REQUIRES(state_lock) { return queue_.size(); }
  void set_capacity(size_t capacity) UPTIER_REQUIRES(state_lock) { queue_.set_capacity(capacity); }

 private:
  CompileQueue queue_;
  const MethodTable& methods_;
  Events& events_;
};

}  // namespace uptier::tiering
