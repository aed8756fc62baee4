#include "uptier/planned_host.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace uptier {

struct PlannedHost::Impl {
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
    std::unique_ptr<HostPlan> plan = nullptr;
  };

  PlanLimits limits;
  std::vector<Function> functions = {};
  std::mutex mutex = {};             // of what follows
  std::vector<Method> methods = {};  // by MethodId
};

PlannedHost::PlannedHost(Runtime& runtime, PlanLimits limits)
    : runtime_(runtime), impl_(new Impl{limits}, [](Impl* i) { delete i; }) {}

MethodId PlannedHost::method(uint32_t function) const { return impl_->functions[function].method; }

Status PlannedHost::add(uint32_t function) {
  auto& functions = impl_->functions;
  functions.resize(std::max<size_t>(functions.size(), function + 1));
  Impl::Function& f = functions[function];
  MethodInfo of = info(function);
  of.key.function_index |= f.plans << 20;
  if (f.plans != 0) of.name += "#" + std::to_string(f.plans + 1);
  Result<MethodId> m = runtime_.add_method(*this, std::move(of));
  if (!m) return m.error();
  f.method = *m;
  entry_changed(function, runtime_.entry_address(*m));
  look_again(function);
  std::lock_guard lock(impl_->mutex);
  auto& methods = impl_->methods;
  methods.resize(std::max<size_t>(methods.size(), m->index() + 1));
  methods[m->index()] = {function, ++f.plans < impl_->limits.plans};
  return {};
}

HostPlan& PlannedHost::plan_of(MethodId m) {
  std::lock_guard lock(impl_->mutex);
  Impl::Method& method = impl_->methods[m.index()];
  if (method.plan == nullptr) method.plan = make_plan(method.function, method.guess);
  return *method.plan;
}

void PlannedHost::exited(MethodId m) {
  uint32_t exits, function;
  {
    std::lock_guard lock(impl_->mutex);
    exits = ++impl_->methods[m.index()].exits;
    function = impl_->methods[m.index()].function;
  }
  if (exits == impl_->limits.exits && method(function) == m) replan(function);
}

// The method before stays: a call of it that is under way may leave its code yet, and goes on in
// baseline code that is made then. Nobody calls it, so its code goes when there is no room for it.
void PlannedHost::replan(uint32_t function) {
  look_again(function);
  if (impl_->functions[function].plans < impl_->limits.plans) (void)add(function);
}

// The runtime's countdown begins at once; a loop that is new has nothing to say yet.
void PlannedHost::look_again(uint32_t function) {
  Impl::Function& f = impl_->functions[function];
  if (f.patience == nullptr) f.patience = std::make_unique<int32_t>();
  *f.patience = impl_->limits.first_look;
  f.looked = false;
  countdown_changed(function, {.word = f.patience.get()});
}

bool PlannedHost::loop_is_hot(uint32_t function) {
  Impl::Function& f = impl_->functions[function];
  if (f.looked) return true;
  f.looked = true;
  LoopCountdown countdown{.offset = runtime_.loop_countdown_offset(f.method)};
  countdown_changed(function, countdown);
  return countdown.on(Runtime::thread_base()) <= 0;
}

std::string PlannedHost::summary() {
  std::lock_guard lock(impl_->mutex);
  std::string text;
  for (uint32_t function = 0; function < impl_->functions.size(); ++function) {
    uint32_t plans = 0, exits = 0;
    bool guesses = true;
    for (const Impl::Method& m : impl_->methods) {
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
