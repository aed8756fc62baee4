// planned_host.h: a host whose interpreter learns what compiled code should be made for.
//
// Host::build says the same each time it is asked, while the interpreter goes on learning. So what
// it has seen of a function is copied once, into a Plan, when its method is first described, and
// every build reads the plan only. A plan that turns out wrong too often is given up: the function
// gets another method, whose plan is made from all that was seen by then. What is seen only grows,
// so each kind of surprise happens to a function once, and the last plan guesses nothing.
//
// The old method is retired (Runtime::retire_methods): calls of it that are under way, of a function
// that calls itself too, run to their end in what they are in, and may leave it by its plan, which
// goes with the last of them. So nothing else may call it: compiled code, like the interpreter, finds
// entries where entry_changed has put them, and never calls a function of the host's by MethodId.
//
//   add --> interpreted --loop_event, calls--> make_plan --> describe --> compiled code
//             ^   new method: entry_changed                                | a guard fails
//             +------- after `exits` of them, `plans` times at most <--- exited
//
//   Thread: the program's, one at a time: hosts whose programs have several let one of them run. But
//           make_plan and describe are called by the runtime's worker, too: what they read of the
//           interpreter is atomic, or does not change. Plans end on any thread.
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
  uint32_t plans = 8;        // of a function, 4096 at most; the last one guesses nothing
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

// Functions are numbered by the host, from 0, in 20 bits.
class PlannedHost : public Host {
 public:
  explicit PlannedHost(Runtime& runtime, PlanLimits limits = {});

  // Registers a method of a function, the first or the next one. Errors: those of
  // Runtime::add_method; kInvalidArgument for a number, or a function_index of info(), of more than
  // 20 bits, and for more plans than there are numbers for.
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
  void gone(MethodId m) noexcept final { forget(m); }

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

  // Returns the plan of a method of this, and makes it if need be. It lives until no code is left
  // that was made of it, nor any that has that in it (Host::gone), and no frame of such: in
  // host_resume the frame's plan is there to the end. A plan of method() lives until replan.
  HostPlan& plan_of(MethodId m);
  // A guard of a method has failed.
  void exited(MethodId m);
  // A loop's countdown is over. Returns whether it is worth a plan: else it goes on interpreted.
  bool loop_is_hot(uint32_t function);
  // Gives a function a method with a plan that is still to be made, and retires the old one. Old
  // code runs to its end where it is under way; nothing calls it any more.
  void replan(uint32_t function);

  Runtime& runtime_;

 private:
  struct Impl;
  void look_again(uint32_t function);
  void forget(MethodId m);

  std::unique_ptr<Impl, void (*)(Impl*)> impl_;
};

}  // namespace uptier
