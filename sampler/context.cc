#include "sampler/context.h"

#include <utility>

namespace uptier::sampler {
namespace {

// Zero pages until a method runs on an unattached thread. Global because a thread that was never
// attached has nothing but its TLS initialiser, which must be a link-time constant.
struct alignas(4096) SharedContext {
  ThreadContext header;
  alignas(4096) char states[uint64_t{kMaxMethods} * sizeof(MethodState)];
};
static_assert(offsetof(SharedContext, states) == kMethodsOffset);
constinit SharedContext g_shared{};

__attribute__((tls_model("initial-exec"))) constinit thread_local ThreadContext* t_context =
    &g_shared.header;

}  // namespace

ThreadContext& shared_context() noexcept { return g_shared.header; }

ThreadContext* current_context() noexcept { return t_context; }

ThreadContext* exchange_context(ThreadContext* context) noexcept {
  return std::exchange(t_context, context != nullptr ? context : &g_shared.header);
}

int32_t context_tls_offset() noexcept {
  auto* base = static_cast<char*>(__builtin_thread_pointer());
  // Opaque, or the compiler reads the low half of the offset's GOT entry with a 32-bit load, which
  // linkers cannot relax when they make an executable.
  asm("" : "+r"(base));
  return static_cast<int32_t>(reinterpret_cast<char*>(&t_context) - base);
}

}  // namespace uptier::sampler
