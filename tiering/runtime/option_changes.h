// OptionChanges: options that change while threads run: all that slow paths, the policy and compilations read
// where they need them. What code, stubs, counters or memory were made for is fixed for life.
//
// Threads are not stopped. A rate is one word a method, which each thread looks at when it is fit
// for a change (sampler/schedule.h); what was counted before is weighed by the rate before. A flush that
// was planned stands until then.
//
//   Thread: any, without the state mutex.
#pragma once

#include <string_view>

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
  // Returns why an option that may change in other runtimes may not in this one, or null.
  const char* obstacle_to(std::string_view name, const Options& to) const;
  // Brings what is derived from an option up to date.
  void apply_locked(std::string_view name);
  void change_policy_locked();

  Engine& engine_;
};

}  // namespace uptier::tiering
