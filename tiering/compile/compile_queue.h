// CompileQueue: compilation requests, most urgent first.
//
// Bounded: when it is full, the least urgent request is dropped; the caller counts and undoes it
// (the method may ask again later). Requests of equal priority leave in the order of arrival.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <set>

#include "tiering/base/state_lock.h"
#include "uptier/plan.h"

namespace uptier::tiering {

class CompileQueue {
 public:
  explicit CompileQueue(size_t capacity) : capacity_(capacity) {}

  // Adds a request; returns the one that was dropped, if any (possibly this one).
  std::optional<Plan> push(const Plan& plan, double priority) UPTIER_REQUIRES(state_lock) {
    requests_.insert({plan, priority, next_++});
    assert(!requests_.empty());
    if (requests_.size() <= capacity_) return std::nullopt;
    Plan dropped = std::prev(requests_.end())->plan;
    requests_.erase(std::prev(requests_.end()));
    return dropped;
  }

  // Requests that are already in the queue stay.
  void set_capacity(size_t capacity) UPTIER_REQUIRES(state_lock) { capacity_ = capacity; }

  std::optional<Plan> pop() UPTIER_REQUIRES(state_lock) {
    if (requests_.empty()) return std::nullopt;
    Plan p = requests_.begin()->plan;
    requests_.erase(requests_.begin());
    return p;
  }

  void remove(MethodId m) UPTIER_REQUIRES(state_lock) {
    std::erase_if(requests_, [&](const Request& r) { return r.plan.method == m; });
  }
  size_t size() const UPTIER_REQUIRES(state_lock) { return requests_.size(); }

 private:
  struct Request {
    Plan plan;
    double priority;
    uint64_t order;

    bool operator<(const Request& o) const {
      return priority != o.priority ? priority > o.priority : order < o.order;
    }
  };
  size_t capacity_;
  uint64_t next_ = 0;
  std::set<Request> requests_;
};

}  // namespace uptier::tiering
