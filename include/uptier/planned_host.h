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

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "uptier/runtime.h"

namespace uptier {

struct PlanLimits {
  uint32_t plans = 8;        // of a function; the last one guesses nothing
  uint32_t exits = 10;       // of a plan
  int32_t first_look = 200;  // iterations before a loop's function gets a plan
};

// Functions are numbered by the host, from 0.
template <typename Plan>
class PlannedHost : public Host {
 public:
  explicit PlannedHost(Runtime& runtime, PlanLimits limits = {})
      : runtime_(runtime), limits_(limits) {}

  // Makes a method of a function. Errors: those of Runtime::add_method.
  Status add(uint32_t function);
  MethodId method(uint32_t function) const { return functions_[function].method; }
  // Returns one line a function whose guesses have failed.
  std::string summary();

  Status build(MethodId m, FunctionBuilder& b) final {
    describe(plan_of(m), b);
    return {};
  }

 protected:
  // Returns what the host knows of a function's methods. `key` and `name` are of the function; each
  // method but the first adds its number to both, to the function_index from bit 20 on.
  virtual MethodInfo info(uint32_t function) = 0;
  // The function is called by `entry` from now on, and its loops count down in `*countdown`.
  virtual void entry_changed(uint32_t function, const void* entry) = 0;
  virtual void countdown_changed(uint32_t function, int32_t* countdown) = 0;
  // Copies what was seen; `guess`: whether it may be taken for the truth, behind guards.
  virtual std::unique_ptr<Plan> make_plan(uint32_t function, bool guess) = 0;
  virtual void describe(Plan& plan, FunctionBuilder& b) = 0;

  // Returns the plan of a method, and makes it if need be.
  Plan& plan_of(MethodId m);
  // A guard of a method has failed.
  void exited(MethodId m);
  // A loop's countdown is over. Returns whether it is worth a plan: else it goes on interpreted.
  bool loop_is_hot(uint32_t function);
  // Gives a function a method with a plan that is still to be made. Old code runs to its end where
  // it is under way; nothing calls it any more.
  void replan(uint32_t function);

  Runtime& runtime_;

 private:
  struct Function {
    MethodId method;
    uint32_t plans = 0;
    std::unique_ptr<int32_t> patience = nullptr;  // a countdown while the runtime has none
    bool looked = false;                          // it counts down for the runtime now
  };
  struct Method {
    uint32_t function = 0;
    bool guess = true;
    uint32_t exits = 0;
    std::unique_ptr<Plan> plan = nullptr;
  };
  void look_again(uint32_t function);

  PlanLimits limits_;
  std::vector<Function> functions_;
  std::mutex mutex_;             // of what follows
  std::vector<Method> methods_;  // by MethodId
};

// ---- Implementation -----------------------------------------------------------------------------

template <typename Plan>
Status PlannedHost<Plan>::add(uint32_t function) {
  functions_.resize(std::max<size_t>(functions_.size(), function + 1));
  Function& f = functions_[function];
  MethodInfo of = info(function);
  of.key.function_index |= f.plans << 20;
  if (f.plans != 0) of.name += "#" + std::to_string(f.plans + 1);
  Result<MethodId> m = runtime_.add_method(*this, std::move(of));
  if (!m) return m.error();
  f.method = *m;
  entry_changed(function, runtime_.entry_address(*m));
  look_again(function);
  std::lock_guard lock(mutex_);
  methods_.resize(std::max<size_t>(methods_.size(), m->index() + 1));
  methods_[m->index()] = {function, ++f.plans < limits_.plans};
  return {};
}

template <typename Plan>
Plan& PlannedHost<Plan>::plan_of(MethodId m) {
  std::lock_guard lock(mutex_);
  Method& method = methods_[m.index()];
  if (method.plan == nullptr) method.plan = make_plan(method.function, method.guess);
  return *method.plan;
}

template <typename Plan>
void PlannedHost<Plan>::exited(MethodId m) {
  uint32_t exits, function;
  {
    std::lock_guard lock(mutex_);
    exits = ++methods_[m.index()].exits;
    function = methods_[m.index()].function;
  }
  if (exits == limits_.exits && functions_[function].method == m) replan(function);
}

template <typename Plan>
void PlannedHost<Plan>::replan(uint32_t function) {
  MethodId old[] = {functions_[function].method};
  look_again(function);
  if (functions_[function].plans < limits_.plans && add(function)) runtime_.remove_methods(old);
}

// The runtime's countdown begins at once; a loop that is new has nothing to say yet.
template <typename Plan>
void PlannedHost<Plan>::look_again(uint32_t function) {
  Function& f = functions_[function];
  if (f.patience == nullptr) f.patience = std::make_unique<int32_t>();
  *f.patience = limits_.first_look;
  f.looked = false;
  countdown_changed(function, f.patience.get());
}

template <typename Plan>
bool PlannedHost<Plan>::loop_is_hot(uint32_t function) {
  Function& f = functions_[function];
  if (f.looked) return true;
  f.looked = true;
  int32_t* countdown = runtime_.loop_countdown(f.method);
  countdown_changed(function, countdown);
  return *countdown <= 0;
}

template <typename Plan>
std::string PlannedHost<Plan>::summary() {
  std::lock_guard lock(mutex_);
  std::string text;
  for (uint32_t function = 0; function < functions_.size(); ++function) {
    uint32_t plans = 0, exits = 0;
    bool guesses = true;
    for (const Method& m : methods_) {
      if (m.function != function || m.plan == nullptr) continue;
      ++plans;
      exits += m.exits;
      guesses &= m.guess;
    }
    if (exits == 0 && plans < 2) continue;
    text += "speculation: " + info(function).name + ": plans " + std::to_string(plans) +
            ", exits " + std::to_string(exits) + (guesses ? "" : ", guesses no more") + "\n";
  }
  return text;
}

}  // namespace uptier
