// planned_host.h: a host whose interpreter learns which assumptions compiled code should make.
//
// Host::build must return the same description each time, while the interpreter goes on learning.
// So the observations of a function are copied once, into a HostPlan (not the Plan of plan.h), when
// its method is first described, and every build reads only the plan. A plan that turns out wrong
// too often is given up: the function gets another method, whose plan is made from all observations
// up to then. Observations only grow, so each wrong guess happens to a function once, and the last
// plan guesses nothing.
//
// The old method is retired (Runtime::retire_methods). Calls of it that are under way, including
// recursive ones, run to their end in their present code, and may leave it by its plan, which is
// destroyed after the last of them. Nothing else may call the old method. So compiled code, like
// the interpreter, must call the entries that entry_changed has reported, and must never call a
// function of the host by MethodId.
//
//   add --> interpreted --loops or calls--> make_plan --> describe --> compiled code
//             ^   new method: entry_changed                             | a guard fails
//             +----- after `exits` of them, `plans` times at most <-- exited
//
//   Thread: the program's, one at a time; hosts with several program threads must run one of them
//     at a time. But the runtime's worker calls make_plan and describe too, so the interpreter's
//     data that they read must be atomic or constant. Plans may be destroyed on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "uptier/runtime.h"

namespace uptier {

// The base class of a host's plans.
struct HostPlan {
  virtual ~HostPlan() = default;
};

struct PlanLimits {
  uint32_t plans = 8;        // plans of a function, 4096 at most; the last one guesses nothing
  uint32_t exits = 10;       // exits from the code of a plan before it is given up; 0: never
  int32_t first_look = 200;  // iterations before a loop's function gets a plan
};

// The place of the countdown for a function's loops: at first a word of the host, later the calling
// thread's word of its method.
struct LoopCountdown {
  int32_t* word = nullptr;
  ptrdiff_t offset = 0;  // used if there is no word; see Runtime::loop_countdown_offset

  // `thread_base`: Runtime::thread_base(), which an interpreter calls once per call.
  int32_t& on(void* thread_base) const {
    return word != nullptr ? *word
                           : *reinterpret_cast<int32_t*>(static_cast<char*>(thread_base) + offset);
  }
};

// A host that makes plans. It numbers its functions from 0, in 20 bits.
class PlannedHost : public Host {
 public:
  explicit PlannedHost(Runtime& runtime, PlanLimits limits = {});

  // Registers a method for a function, the first or the next one. Errors: as Runtime::add_method;
  // kInvalidArgument for a number, or a function_index of info(), of more than 20 bits, and for the
  // 4,097th method of a function.
  Status add(uint32_t function);
  // Returns the function's latest method.
  MethodId method(uint32_t function) const;
  // Returns one line for each function that has had exits, or more than one plan.
  std::string summary();

  // Inline, like all virtual functions here, because hosts may be compiled with RTTI and the
  // library is not.
  Status build(MethodId m, FunctionBuilder& b) final {
    describe(plan_of(m), b);
    return {};
  }
  void gone(MethodId m) noexcept final { forget(m); }

 protected:
  // Returns the host's information for a function's methods. `key` and `name` belong to the
  // function. Each method after the first adds its number to both, in function_index from bit 20
  // on.
  virtual MethodInfo info(uint32_t function) = 0;
  // Say that the function must be called by `entry` from now on, and that its loops count down at
  // `countdown`. Called in add, loop_is_hot, exited and replan, on their thread.
  virtual void entry_changed(uint32_t function, const void* entry) = 0;
  virtual void countdown_changed(uint32_t function, LoopCountdown countdown) = 0;
  // Copies the observations of a function. `guess`: whether code may assume them, protected by
  // guards.
  virtual std::unique_ptr<HostPlan> make_plan(uint32_t function, bool guess) = 0;
  virtual void describe(HostPlan& plan, FunctionBuilder& b) = 0;

  // Returns the plan of a method of this host; makes it if there is none. It is valid until all
  // code made from it is gone, all code with such code inlined (Host::gone), and all their frames:
  // in host_resume the frame's plan is valid to the end. The plan of method() is valid until
  // replan.
  HostPlan& plan_of(MethodId m);
  // Says that a guard of a method has failed.
  void exited(MethodId m);
  // Called when a loop's countdown has ended. Returns true if the loop is worth a plan; else it
  // stays interpreted.
  bool loop_is_hot(uint32_t function);
  // Gives a function a new method, whose plan is made later, and retires the old one. Calls under
  // way in old code run to their end; nothing new calls it.
  void replan(uint32_t function);

  Runtime& runtime_;

 private:
  struct Impl;
  void look_again(uint32_t function);
  void forget(MethodId m);

  std::unique_ptr<Impl, void (*)(Impl*)> impl_;
};

}  // namespace uptier
