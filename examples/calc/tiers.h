// tiers.h: calc as an embedder: its functions are methods of a uptier::Runtime.
//
//   add_all      every function becomes a method, interpreted at first (MethodInfo::host_entry)
//   build        the runtime wants code: a plan is frozen, and described to its builder
//   loop_event   a loop of the interpreter is hot: the rest of the call may run in compiled code
//   leave        a guard failed: the interpreter takes the frame back
//   replan       a plan was wrong too often: the function gets a new method, whose plan knows more
//
// What a function is called by is Proto::entry, read at each call, so replacing a method is one
// store. A plan holds on to what it was made from for ever; what was seen only grows, so each
// kind of surprise happens to a function once, and the last plan does without speculation.
//
//   Thread: the program's, but for build, which the runtime's worker calls, too.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "plan.h"
#include "uptier/runtime.h"

namespace calc {

class Tiers : public uptier::Host {
 public:
  // `held`: every method stays in the tier that the options name, so what calls teach the
  // interpreter must be had before the method is compiled.
  Tiers(Vm& vm, bool held) : vm_(vm), held_(held) {}

  uptier::Status add_all(uptier::Runtime& runtime);
  // Runs the program. Errors are in the Vm.
  void run();
  // Returns the IR of the functions of a name, as they are now.
  std::string ir(std::string_view name);

  uptier::Status build(uptier::MethodId m, uptier::FunctionBuilder& b) override;

  // Returns one line a function that was planned more than once.
  std::string summary();

  // A call of an interpreted function.
  void count_call(Proto& p);
  bool loop_event(Closure* f, const Val* r, const Instr* header, Val& result);
  // A frame of compiled code in which a guard failed.
  Val leave(const uptier::HostFrame& frame);

 private:
  static constexpr uint32_t kPlans = 8;       // of a function; the last one is generic
  static constexpr uint32_t kExits = 10;      // of a plan
  static constexpr int32_t kFirstLook = 200;  // iterations before a loop's function gets a plan
  static constexpr uint32_t kWarmCalls = 2;   // before a held tier takes over

  struct Function {
    uptier::MethodId method;
    uint32_t plans = 0;
    uint32_t calls = 0;
    int32_t patience = kFirstLook;  // countdown of loops while the runtime does not count them
  };

  uptier::Result<uptier::MethodId> add_method(Proto& p, bool interpreted);
  void look_again(Proto& p);
  Plan& plan_of(uptier::MethodId m);
  void replan(Proto& p);

  Vm& vm_;
  bool held_;
  uptier::Runtime* runtime_ = nullptr;
  std::vector<Function> functions_;  // by Proto::index
  std::mutex mutex_;                 // of what follows
  struct Method {
    Proto* proto;
    uint32_t number;
    std::unique_ptr<Plan> plan;  // made when it is wanted, never changed
  };
  std::vector<Method> methods_;  // by MethodId
};

}  // namespace calc
