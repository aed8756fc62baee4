// LiveMaker: what a view of this process is told (uptier/live_time.h).
//
//   Thread: any. Takes the state mutex.
#pragma once

#include "tiering/base/state_lock.h"
#include "uptier/live_time.h"

namespace uptier::tiering {

struct Engine;

class LiveMaker {
 public:
  explicit LiveMaker(const Engine& engine) : engine_(engine) {}

  // May throw std::bad_alloc.
  LiveTime live_time() const;

 private:
  void add_compiling(LiveRow& row) const UPTIER_REQUIRES(state_lock);

  const Engine& engine_;
};

}  // namespace uptier::tiering
