// Requests: what is to be compiled, and what methods know of having asked for it.
//
//   asked --> queued --pop--> compiled --done--> may be asked for again
//                  \--no room: dropped, counted--/
//
// Law: a method asks for each of its versions once at a time. What says so (Method::osr_requested,
// optimized_requested, copy_asked, ...) is set here when the request goes into the queue, or before
// by the thread that asked, and taken back here when the request is done with, one way or the other.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <optional>

#include "tiering/compile/compile_queue.h"
#include "tiering/events/events.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

class Requests {
 public:
  Requests(size_t capacity, const MethodTable& methods, Events& events)
      : queue_(capacity), methods_(methods), events_(events) {}

  // Queues what a method is to have; nothing for one that was removed.
  void add(Method& m, const Plan& plan, double priority);
  // The request is done with, one way or the other.
  void done(Method& m, const Plan& plan);
  // Takes what there is for a method out of the queue.
  void remove(MethodId m) { queue_.remove(m); }

  std::optional<Plan> pop() { return queue_.pop(); }
  size_t size() const { return queue_.size(); }
  void set_capacity(size_t capacity) { queue_.set_capacity(capacity); }

 private:
  CompileQueue queue_;
  const MethodTable& methods_;
  Events& events_;
};

}  // namespace uptier::tiering
