#include "uptier/planned_host.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "profile/base/wall.h"
#include "uptier/thread_safety.h"

namespace uptier {
namespace {

// Position of the plan number in the function_index of its method.
constexpr uint32_t kFunctionBits = 20;
constexpr uint32_t kMostFunctions = 1u << kFunctionBits;
constexpr uint32_t kMostPlans = 1u << (32 - kFunctionBits);

Error refused_plan(const MethodInfo& of, const std::string& why) {
  return {ErrorCode::kInvalidArgument, of.name + ": " + why};
}

}  // namespace

struct PlannedHost::Impl {
  struct Function {
    MethodId method;
    uint32_t plans = 0;
    std::unique_ptr<int32_t> patience = nullptr;  // a countdown, used while the runtime has none
    bool looked = false;                          // the countdown belongs to the runtime now
  };
  struct Method {
    uint32_t function = 0;
    bool guess = true;
    uint32_t exits = 0;
    std::unique_ptr<HostPlan> plan = nullptr;
  };
  // Totals of a function's earlier plans.
  struct Past {
    uint32_t plans = 0, exits = 0;
    bool guesses = true;

    void add(const Method& m) {
      if (m.plan == nullptr) return;
      ++plans;
      exits += m.exits;
      guesses &= m.guess;
    }
  };

  PlanLimits limits;
  std::vector<Function> functions = {};
  CheckedLock<std::mutex> mutex = {};
  std::map<MethodId, Method> methods UPTIER_GUARDED_BY(mutex) = {};  // that exist
  // By function, of methods that are gone.
  std::map<uint32_t, Past> past UPTIER_GUARDED_BY(mutex) = {};
};

PlannedHost::PlannedHost(Runtime& runtime, PlanLimits limits)
    : runtime_(runtime), impl_(new Impl{limits}, [](Impl* i) { delete i; }) {}

MethodId PlannedHost::method(uint32_t function) const { return impl_->functions[function].method; }

Status PlannedHost::add(uint32_t function) try {
  MethodInfo of = info(function);
  if (std::max(function, of.key.function_index) >= kMostFunctions) {
    return refused_plan(of, "functions of a PlannedHost, and their function_index, have 20 bits");
  }
  auto& functions = impl_->functions;
  functions.resize(std::max<size_t>(functions.size(), function + 1));
  Impl::Function& f = functions[function];
  if (f.plans == kMostPlans) return refused_plan(of, "a function has at most 4096 plans");
  of.key.function_index |= f.plans << kFunctionBits;
  if (f.plans != 0) of.name += "#" + std::to_string(f.plans + 1);
  // Made first: from add_method() on, nothing may fail.
  std::map<MethodId, Impl::Method> made;
  made.emplace(MethodId::none(), Impl::Method{function});
  auto node = made.extract(made.begin());
  if (f.patience == nullptr) f.patience = std::make_unique<int32_t>();
  {
    // The worker may ask for a plan before add_method returns.
    Held lock(impl_->mutex);
    Result<MethodId> m = runtime_.add_method(*this, std::move(of));
    if (!m) return m.error();
    f.method = *m;
    node.key() = *m;
    node.mapped().guess = ++f.plans < impl_->limits.plans;
    impl_->methods.insert(std::move(node));
  }
  entry_changed(function, runtime_.entry_address(f.method));
  look_again(function);
  return {};
} catch (const std::exception&) { return out_of_memory("PlannedHost::add"); }

HostPlan& PlannedHost::plan_of(MethodId m) {
  Held lock(impl_->mutex);
  Impl::Method& method = impl_->methods.find(m)->second;
  if (method.plan == nullptr) method.plan = make_plan(method.function, method.guess);
  return *method.plan;
}

// The method's counts stay in the summary. Its plan is destroyed after the lock is released, since
// it is always used without the lock.
void PlannedHost::forget(MethodId m) {
  Impl::Method gone;
  Held lock(impl_->mutex);
  auto at = impl_->methods.find(m);
  if (at == impl_->methods.end()) return;
  gone = std::move(at->second);
  finishes([&] {
    impl_->mutex.known_held();
    impl_->past[gone.function].add(gone);
  });
  impl_->methods.erase(at);
}

void PlannedHost::exited(MethodId m) {
  uint32_t exits, function;
  {
    Held lock(impl_->mutex);
    Impl::Method& method = impl_->methods.find(m)->second;
    exits = ++method.exits;
    function = method.function;
  }
  // Tries again after as many more exits if there was no free place for another plan.
  const uint32_t limit = impl_->limits.exits;
  if (limit != 0 && exits % limit == 0 && method(function) == m) replan(function);
}

void PlannedHost::replan(uint32_t function) {
  MethodId old[] = {method(function)};
  look_again(function);
  if (impl_->functions[function].plans >= impl_->limits.plans) return;
  runtime_.retire_methods({});  // plans that have ended since free their places
  if (add(function)) runtime_.retire_methods(old);
}

// Starts the runtime's countdown at once; a new loop has no history.
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
  Held lock(impl_->mutex);
  std::map<uint32_t, Impl::Past> all = impl_->past;
  for (const auto& [id, m] : impl_->methods) all[m.function].add(m);
  std::string text;
  for (const auto& [function, p] : all) {
    if (p.exits == 0 && p.plans < 2) continue;
    text += "speculation: " + info(function).name + ": plans " + std::to_string(p.plans) +
            ", exits " + std::to_string(p.exits) + (p.guesses ? "" : ", guesses no more") + "\n";
  }
  return text;
}

}  // namespace uptier
