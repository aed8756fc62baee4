// plan.h: a request for code (Plan), and the code that a host makes for it (HostCode).
#pragma once

#include <cstdint>

#include "uptier/ids.h"

namespace uptier {

// One body to compile: which method, at which quality, instrumented or not, and where it is
// entered.
struct Plan {
  MethodId method;
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop = LoopId::none();  // entered at this loop's header; none: at the start
  bool from_host = false;            // a frame of the host's interpreter enters the loop
  bool use_profile = false;
  // The version assumes the usual values of its parameters: a guard at its start sends other calls
  // to the version that already exists. Host::compile never gets such a plan.
  bool for_values = false;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// Code that the host made: a function with exactly the method's signature, System V ABI. Any thread
// may enter it until Host::release returns it to the host.
struct HostCode {
  const void* entry = nullptr;
  // Size in bytes, from `entry` on; no other code shares them. A frame that returns into this range
  // counts as running the code, which is not released before. 0 (for a C function) means unknown:
  // then the code is released only after every thread has been quiescent.
  uint64_t bytes = 0;
  void* owner = nullptr;  // for the host; the library does not use it
};

}  // namespace uptier
