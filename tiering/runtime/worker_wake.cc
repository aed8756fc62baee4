#include "tiering/runtime/worker_wake.h"

#include <cassert>

#include "tiering/runtime/worker.h"

namespace uptier::tiering {

void WorkerWake::work_here() noexcept {
  assert(worker_ != nullptr);
  worker_->work_here();
}

}  // namespace uptier::tiering
