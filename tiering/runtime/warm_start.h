// WarmStart: uses a saved profile (saved/saved_profile.h) to make a process warm.
//
// Methods that are hot in the saved profile are described and optimized before they are called, or
// at their first call.
//
//   Thread: any. The caller does not hold the state mutex.
#pragma once

#include <cstdint>
#include <vector>

#include "uptier/ids.h"

namespace uptier::tiering {

struct Engine;
struct Method;

class WarmStart {
 public:
  // `engine` outlives this.
  explicit WarmStart(Engine& engine) : engine_(engine) {}

  // Says whether to optimize a method without code at once. The caller has its turn.
  bool warm(Method& m);
  // Describes the callees of a hot method before the method is compiled, and their callees: a body
  // that is not described yet cannot be inlined (docs/notes/0014). `depth`: 0 for the method
  // itself.
  void prepare(Method& m, uint32_t depth);
  // Records that the code of a method was made from its saved profile alone.
  void trust_saved(Method& m);
  // Lists the methods in the saved profile and wakes the worker, which compiles them ahead of their
  // first calls. Called when a thread attaches and at the first call of any method.
  void wake_for_known();

 private:
  bool hot_before(Method& m);

  Engine& engine_;
};

}  // namespace uptier::tiering
