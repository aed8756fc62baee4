// Modules whose functions may be inlined into each other, for tests.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "jit/opt/inlinee.h"
#include "tests/support/indirect_calls.h"
#include "tests/support/opt_harness.h"

namespace uptier::test {

// Knows every function of a module, with the profile that `profile(function)` makes up.
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

// Every block as often as every other: all calls are hot.
inline jit::BodyProfile even_profile(const jit::Function& f) {
  return {std::vector<uint64_t>(f.block_sites, 1000), {}};
}

}  // namespace uptier::test
