// WarmStart: uses a saved profile (saved/saved_profile.h) to make a process warm.
//
// What the saved profile calls hot is described and optimized before it is called, or at its first
// call.
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

  // Returns whether a method without code is to be optimized at once. The caller has its turn.
  bool warm(Method& m);
  // Describes what a hot method calls before the method is compiled, and what its callees call: a
  // body that is not described yet cannot be inlined (docs/notes/0014). `depth`: 0 at the method itself.
  void prepare(Method& m, uint32_t depth);
  // Records that the code of a method was made from its saved profile alone.
  void trust_saved(Method& m);
  // Lists the methods that the saved profile knows and wakes the worker, which compiles them ahead
  // of their first calls. Called when a thread attaches and at the first call of any method.
  void wake_for_known();

 private:
  bool hot_before(Method& m);
  std::vector<MethodId> likely_inlinees(Method& m);

  Engine& engine_;
};

}  // namespace uptier::tiering
