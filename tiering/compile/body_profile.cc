#include "tiering/compile/body_profile.h"

#include "tiering/observe/phase.h"

namespace uptier::tiering {

jit::SiteTargets site_targets(const Estimates::Targets& seen, const jit::StubTable& stubs) {
  jit::SiteTargets site{seen.site, seen.total, {}};
  for (auto [target, count] : seen.methods) {
    if (target->removed) continue;
    site.targets.push_back(
        {target->id, count, stubs.stub(target->id), target->info.signature, target->info.name});
  }
  return site;
}

jit::BodyProfile body_profile(const Method& m, const Estimates& estimates,
                              const jit::StubTable& stubs) {
  jit::BodyProfile p{blocks_to_compile_from(m, estimates), {}, estimates.sample_weight(m)};
  if (p.blocks.empty()) return p;
  for (Estimates::Targets& seen : estimates.targets_of(m)) {
    auto phase = m.flushed->seen_phase->targets.find(seen.site);
    if (phase != m.flushed->seen_phase->targets.end()) estimates.take_over(phase->second, seen);
    p.targets.push_back(site_targets(seen, stubs));
  }
  return p;
}

}  // namespace uptier::tiering
