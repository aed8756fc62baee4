// Where compiled code stands: for the host's backtraces.
#include "jit/code/code_registry.h"
#include "jit/code/stack_walk.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier {

std::optional<CallSite> Runtime::call_site(const void* return_address) noexcept {
  if (return_address == nullptr) return std::nullopt;
  const jit::Code* code = jit::find_code(static_cast<const uint8_t*>(return_address) - 1);
  const jit::CallRow* row = code == nullptr ? nullptr : code->call_at(return_address);
  if (row == nullptr) return std::nullopt;
  return CallSite{code->method_of(row->body), row->loc};
}

namespace tiering {

void RuntimeImpl::walk_with(bool (*visit)(MethodId, uint32_t, void*), void* to) noexcept {
  AttachedThread* t = here();
  // A thread that is attached to another runtime as well may have frames further out.
  bool alone = t != nullptr && t->outer == &sampler::shared_context();
  jit::walk_stack({.space = *space_,
                   .innermost = sampler::current_context()->activation,
                   .exits = t == nullptr ? nullptr : t->host_exits,
                   .ends_there = alone,
                   .visit = visit,
                   .to = to});
}

size_t RuntimeImpl::walk(std::span<CallSite> sites) noexcept {
  struct {
    std::span<CallSite> sites;
    size_t count = 0;
  } all{sites};
  if (sites.empty()) return 0;
  walk_with(
      [](MethodId m, uint32_t location, void* to) {
        auto& a = *static_cast<decltype(all)*>(to);
        a.sites[a.count++] = {m, location};
        return a.count != a.sites.size();
      },
      &all);
  return all.count;
}

}  // namespace tiering
}  // namespace uptier
