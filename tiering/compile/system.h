// System: the inputs of decisions that do not depend on the method's behavior (SystemSnapshot): the
// length of the queue, the room for code, and the speed of compiling and running on this machine.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "tiering/base/state_lock.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/compile/requests.h"
#include "tiering/model/method.h"
#include "tiering/policy/policy.h"
#include "uptier/options.h"

namespace uptier::tiering {

// The length of the queue for decisions. It rises at once, and falls when the queue has become half
// as long. So a queue that varies around one length does not change the decisions back and forth.
class SteadyQueue {
 public:
  uint32_t see(uint32_t length) UPTIER_REQUIRES(state_lock) {
    if (length > seen_ || length <= seen_ / 2) seen_ = length;
    return seen_;
  }

 private:
  uint32_t seen_ = 0;
};

class System {
 public:
  // All outlive this. `live`: the options with later changes.
  System(const Options& live, const Requests& requests, const jit::CodeSpace& space,
         const MachineRates& machine)
      : live_(live), requests_(requests), space_(space), machine_(machine) {}

  // Says whether the code in service has reached the budget.
  bool budget_spent() const UPTIER_REQUIRES(state_lock) {
    return space_.bytes_in_service() >= live_.code_budget;
  }

  SystemSnapshot snapshot(const Method& m) const UPTIER_REQUIRES(state_lock) {
    SystemSnapshot s;
    s.queue_length = queue_.see(static_cast<uint32_t>(requests_.size()));
    s.code_budget_spent = budget_spent();
    machine_.tell(m.shape->instructions, s);
    return s;
  }

 private:
  mutable SteadyQueue queue_;  // guarded by the state mutex
  const Options& live_;
  const Requests& requests_;
  const jit::CodeSpace& space_;
  const MachineRates& machine_;
};

}  // namespace uptier::tiering
