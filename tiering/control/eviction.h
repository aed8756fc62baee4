// Eviction: room for code, which the coldest methods give up theirs for.
//
// Which are cold is learnt by a second chance (the clock algorithm): the cells of those that have
// not been heard of for the longest time are set back to ask, while their code stays. One that is
// called asks, and is put back in service for the cost of one slow call; one that has not asked by
// the time room is wanted goes first. A method that waits for its first code cannot wait for that; it
// takes the room of the methods that have been quiet longest.
//
//   Thread: the caller holds the runtime's state mutex, but in make_with_room(), which takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "jit/code/code_space.h"
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
  // The parts that it works on. All outlive it.
  struct Parts {
    const Options& options;
    const Options& live;  // what of the options changes
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

  // Frees code until `wanted` more bytes fit, as far as it can. `urgent`: also code that has not proved
  // to be cold. UINT64_MAX: all that is not running.
  void make_room_locked(uint64_t wanted, bool urgent);
  // Compiles, and when room is wanting makes some and tries once more. `urgent`: a caller waits for
  // it. The caller holds what MethodCompiler::make() wants.
  Result<std::unique_ptr<Version>> make_with_room(Method& m, const Plan& plan, bool urgent);
  // The method has code again: asks for optimized code if it had that when it was evicted.
  void ask_again_after_eviction(Method& m);

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
