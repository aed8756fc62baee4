// OptionChanges: changes options while threads run: all options that slow paths, the policy and
// compilations read when they need them. Options that shaped code, stubs, counters or memory are
// fixed for life.
//
// Threads are not stopped. A rate is one word per method, which each thread reads at moments that
// are fit for a change (sampler/schedule.h); earlier counts have the weight of the earlier rate. A
// planned flush stands until then.
//
//   Thread: any, without the state mutex.
#pragma once

#include <string_view>

#include "tiering/base/state_lock.h"
#include "uptier/options.h"
#include "uptier/result.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

struct Engine;

class OptionChanges {
 public:
  // `engine` outlives this.
  explicit OptionChanges(Engine& engine) : engine_(engine) {}

  // See uptier/runtime.h.
  Status set(std::string_view name, std::string_view value);
  Status observe(Sampling how);

 private:
  // Returns the reason why an option cannot change in this runtime, or null.
  const char* obstacle_to(std::string_view name, const Options& to) const;
  // Updates the data derived from an option.
  void apply_locked(std::string_view name) UPTIER_REQUIRES(state_lock);
  void change_policy_locked() UPTIER_REQUIRES(state_lock);

  Engine& engine_;
};

}  // namespace uptier::tiering
