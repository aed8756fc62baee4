// plan.h: what a compiler is asked for, and what a host that compiles by itself answers.
#pragma once

#include <cstdint>

#include "uptier/ids.h"

namespace uptier {

// One body to be made: which method, how good, observed or not, entered where.
struct Plan {
  MethodId method;
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop = LoopId::none();  // entered at this loop's header; none: at the start
  bool from_host = false;            // the loop is entered from a frame of the host's interpreter
  bool use_profile = false;
  // For the values that its parameters nearly always have: a guard in front sends other calls on to
  // the version that is there already. Never asked of a host.
  bool for_values = false;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// Code that the host made: a function with exactly the method's signature, System V ABI. It may be
// entered by any thread until Host::release gets it back.
struct HostCode {
  const void* entry = nullptr;
  // Bytes from `entry` on that no other code shares. Who returns into them is taken to run the
  // code, which is not released before. 0, of a C function: not known, and the code is released
  // only once every thread has been quiescent.
  uint64_t bytes = 0;
  void* owner = nullptr;  // the host's own, never looked at
};

}  // namespace uptier
