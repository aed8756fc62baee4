// The static members of Runtime.
#include "uptier/runtime.h"

#include "jit/code/code.h"
#include "jit/code/code_registry.h"
#include "sampler/context.h"
#include "tiering/runtime/runtime_impl.h"
#include "tiering/runtime/traps.h"

namespace uptier {

Result<std::unique_ptr<Runtime>> Runtime::create(const Options& options, TraceSink* sink,
                                                 Policy* policy) {
  return tiering::RuntimeImpl::create(options, sink, policy);
}

void Runtime::raise(TrapCode code, uint64_t detail) noexcept {
  sampler::ThreadContext* c = sampler::current_context();
  if (c->activation == nullptr) return tiering::lose_trap(*c);
  tiering::put_trap(*c, code, detail);
}

std::optional<CallSite> Runtime::call_site(const void* return_address) noexcept {
  if (return_address == nullptr) return std::nullopt;
  const jit::Code* code = jit::find_code(static_cast<const uint8_t*>(return_address) - 1);
  const jit::CallRow* row = code == nullptr ? nullptr : code->call_at(return_address);
  if (row == nullptr) return std::nullopt;
  return CallSite{code->method_of(row->body), row->loc};
}

void* Runtime::thread_base() noexcept { return sampler::current_context(); }

uint64_t Runtime::stack_left() noexcept {
  const sampler::ThreadContext* c = sampler::current_context();
  if (c->stack_limit == 0) return UINT64_MAX;
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > c->stack_limit ? here - c->stack_limit : 0;
}

}  // namespace uptier
