#include "tiering/runtime/backtrace.h"

#include <cassert>

#include "jit/code/stack_walk.h"
#include "sampler/context.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {

void walk_frames(const Engine& engine, bool (*visit)(MethodId, uint32_t, void*),
                 void* to) noexcept {
  assert(visit != nullptr);
  AttachedThread* t = engine.here();
  // A thread that is also attached to another runtime may have frames further out.
  bool alone = t != nullptr && t->outer == &sampler::shared_context();
  jit::walk_stack({.space = *engine.space,
                   .innermost = sampler::current_context()->activation,
                   .exits = t == nullptr ? nullptr : t->host_exits,
                   .ends_there = alone,
                   .visit = visit,
                   .to = to});
}

size_t walk_frames(const Engine& engine, std::span<CallSite> sites) noexcept {
  struct {
    std::span<CallSite> sites;
    size_t count = 0;
  } all{sites};
  if (sites.empty()) return 0;
  walk_frames(
      engine,
      [](MethodId m, uint32_t location, void* to) {
        auto& a = *static_cast<decltype(all)*>(to);
        a.sites[a.count++] = {m, location};
        return a.count != a.sites.size();
      },
      &all);
  return all.count;
}

}  // namespace uptier::tiering
