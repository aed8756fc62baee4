// Modules whose functions can be inlined into each other, for tests.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "jit/opt/inlinee.h"
#include "tests/support/indirect_calls.h"
#include "tests/support/opt_harness.h"

namespace uptier::test {

// Offers every function of a module for inlining, with the made-up profile that `profile(function)`
// returns.
class ModuleInlinees final : public jit::InlineeSource {
 public:
  using Profiles = std::function<jit::BodyProfile(const jit::Function&)>;

  ModuleInlinees(const jit::Module& module, Profiles profiles, bool to_host = false)
      : module_(module), profiles_(std::move(profiles)), to_host_(to_host) {}

  const jit::Inlinee* find(MethodId m) override {
    auto& known = known_[m.index()];
    if (!known) {
      const jit::Function& f = module_.functions[m.index()];
      known = std::make_unique<jit::Inlinee>(jit::Inlinee{f, profiles_(f), to_host_});
    }
    return known.get();
  }

 private:
  const jit::Module& module_;
  Profiles profiles_;
  bool to_host_;
  std::map<uint32_t, std::unique_ptr<jit::Inlinee>> known_;
};

// Returns a profile in which all blocks have equal counts, so all calls are hot.
inline jit::BodyProfile even_profile(const jit::Function& f) {
  return {std::vector<uint64_t>(f.block_sites, 1000), {}};
}

}  // namespace uptier::test
