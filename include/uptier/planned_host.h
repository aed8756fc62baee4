// planned_host.h: a host whose interpreter learns what compiled code should be made for.
//
// Host::build says the same each time it is asked, while the interpreter goes on learning. So what
// it has seen of a function is copied once, into a Plan, when its method is first described, and
// every build reads the plan only. A plan that turns out wrong too often is given up: the function
// gets another method, whose plan is made from all that was seen by then. What is seen only grows,
// so each kind of surprise happens to a function once, and the last plan guesses nothing.
//
//   add --> interpreted --loop_event, calls--> make_plan --> describe --> compiled code
//             ^   new method: entry_changed                                | a guard fails
//             +------- after `exits` of them, `plans` times at most <--- exited
//
//   Thread: the program's, but for make_plan and describe, which the runtime's worker calls, too:
//           what they read of the interpreter is atomic, or does not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "uptier/runtime.h"

namespace uptier {

// What a host derives its own from.
struct HostPlan {
  virtual ~HostPlan() = default;
};

struct PlanLimits {
  uint32_t plans = 8;        // of a function; the last one guesses nothing
  uint32_t exits = 10;       // of a plan
  int32_t first_look = 200;  // iterations before a loop's function gets a plan
};

// Where the loops of a function count down: in a word of the host's at first, in the calling
// thread's word of its method from then on.
struct LoopCountdown {
  int32_t* word = nullptr;
  ptrdiff_t offset = 0;  // where there is no word; Runtime::loop_countdown_offset

  // `thread_base`: Runtime::thread_base(), which an interpreter asks once a call.
  int32_t& on(void* thread_base) const {
    return word != nullptr ? *word
                           : *reinterpret_cast<int32_t*>(static_cast<char*>(thread_base) + offset);
  }
};

// Functions are numbered by the host, from 0.
class PlannedHost : public Host {
 public:
  explicit PlannedHost(Runtime& runtime, PlanLimits limits = {});

  // Registers a method of a function, the first or the next one. Errors: those of
  // Runtime::add_method.
  Status add(uint32_t function);
  // Returns the function's latest method.
  MethodId method(uint32_t function) const;
  // Returns one line a function whose guesses have failed.
  std::string summary();

  // Inline, as all virtual functions here: hosts may be compiled with RTTI, the library is not.
  Status build(MethodId m, FunctionBuilder& b) final {
    describe(plan_of(m), b);
    return {};
  }

 protected:
  // Returns what the host knows of a function's methods. `key` and `name` are of the function; each
  // method but the first adds its number to both, to the function_index from bit 20 on.
  virtual MethodInfo info(uint32_t function) = 0;
  // The function is called by `entry` from now on, and its loops count down there.
  virtual void entry_changed(uint32_t function, const void* entry) = 0;
  virtual void countdown_changed(uint32_t function, LoopCountdown countdown) = 0;
  // Copies what was seen; `guess`: whether it may be taken for the truth, behind guards.
  virtual std::unique_ptr<HostPlan> make_plan(uint32_t function, bool guess) = 0;
  virtual void describe(HostPlan& plan, FunctionBuilder& b) = 0;

  // Returns the plan of a method, and makes it if need be. It lives as long as this.
  HostPlan& plan_of(MethodId m);
  // A guard of a method has failed.
  void exited(MethodId m);
  // A loop's countdown is over. Returns whether it is worth a plan: else it goes on interpreted.
  bool loop_is_hot(uint32_t function);
  // Gives a function a method with a plan that is still to be made. Calls of the one before run to
  // their end, in its code; nothing calls it any more. It stays registered, PlanLimits::plans of
  // them a function at most.
  void replan(uint32_t function);

  Runtime& runtime_;

 private:
  struct Impl;
  void look_again(uint32_t function);

  std::unique_ptr<Impl, void (*)(Impl*)> impl_;
};

}  // namespace uptier
