// Eviction: makes room for code by taking code from the coldest methods.
//
// A second chance finds the cold ones (the clock algorithm): the cells of the methods that were
// inactive longest are set back to the slow path, while their code stays. If such a method is
// called, it is put back in service for the cost of one slow call; if it is not called before room
// is needed, its code goes first. A method that needs its first code cannot wait for that; it takes
// the room of the methods that were inactive longest.
//
//   Thread: the caller holds the runtime's state mutex; but make_with_room() takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "jit/code/code_space.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/compile/requests.h"
#include "tiering/model/method_table.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"
#include "uptier/options.h"
#include "uptier/plan.h"

namespace uptier::tiering {

class Eviction {
 public:
  // The components that it uses. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;  // the options with later changes
    const Stress& stress;
    WaitedMutex& state_mutex;
    const MethodTable& methods;
    const jit::CodeSpace& space;
    MethodCompiler& compiler;
    Relay& relay;
    Requests& requests;
    InService& in_service;
  };
  explicit Eviction(const Parts& parts);

  // Frees code until `wanted` more bytes fit, as far as possible. `urgent`: also code that has not
  // proved to be cold. UINT64_MAX: everything that is not running.
  void make_room_locked(uint64_t wanted, bool urgent) UPTIER_REQUIRES(state_lock);
  // Compiles; if there is no room, makes some and tries once more. `urgent`: a caller is waiting.
  // The caller meets the requirements of MethodCompiler::make().
  Result<std::unique_ptr<Version>> make_with_room(Method& m, const Plan& plan, bool urgent);
  // The method has code again: requests optimized code if it had that when it was evicted.
  void ask_again_after_eviction(Method& m) UPTIER_REQUIRES(state_lock);

 private:
  const Options& options_;
  const Options& live_;
  const Stress& stress_;
  WaitedMutex& state_mutex_;
  const MethodTable& methods_;
  const jit::CodeSpace& space_;
  MethodCompiler& compiler_;
  Relay& relay_;
  Requests& requests_;
  InService& in_service_;
};

}  // namespace uptier::tiering
