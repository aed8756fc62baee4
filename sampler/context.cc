#include "sampler/context.h"

#include <algorithm>
#include <iterator>

namespace uptier::sampler {
namespace {

// Zero pages until a method runs on an unattached thread. Global because a thread that was never
// attached has only its TLS initialiser, which must be a link-time constant.
struct alignas(4096) SharedContext {
  alignas(4096) uint64_t tallies[kTallyWords];
  ThreadContext header;
  alignas(4096) char states[uint64_t{kBlockMethods} * sizeof(MethodState)];
};
static_assert(offsetof(SharedContext, states) == offsetof(SharedContext, header) + kMethodsOffset);
static_assert(offsetof(SharedContext, header) == kTallyBytes);
constinit SharedContext g_shared{};

struct Blocks {
  ThreadContext* at[kBlocks];
  constexpr Blocks() { std::fill(std::begin(at), std::end(at), &g_shared.header); }
};

__attribute__((tls_model("initial-exec"))) constinit thread_local Blocks t_blocks;

}  // namespace

ThreadContext& shared_context() noexcept { return g_shared.header; }

ThreadContext* current_context() noexcept { return t_blocks.at[0]; }

ThreadContext* exchange_context(ThreadContext* context) noexcept {
  ThreadContext* before = t_blocks.at[0];
  if (context == nullptr) context = &g_shared.header;
  constexpr size_t kBytes = kBlockMethods * sizeof(MethodState);
  for (uint32_t b = 1; b < kBlocks; ++b) {
    bool has = b * kBlockMethods < context->method_capacity;
    auto* block = reinterpret_cast<ThreadContext*>(reinterpret_cast<char*>(context) + b * kBytes);
    t_blocks.at[b] = has ? block : &g_shared.header;
  }
  t_blocks.at[0] = context;
  return before;
}

MethodState& ThreadContext::any_method(uint32_t index) noexcept {
  if (index < kBlockMethods || index < method_capacity) return method(index);
  return g_shared.header.method(index % kBlockMethods);
}

int32_t context_tls_offset() noexcept {
  auto* base = static_cast<char*>(__builtin_thread_pointer());
  // Makes the offset opaque. Otherwise the compiler reads the low half of its GOT entry with a
  // 32-bit load, which linkers cannot relax when they make an executable.
  asm("" : "+r"(base));
  return static_cast<int32_t>(reinterpret_cast<char*>(&t_blocks.at[0]) - base);
}

}  // namespace uptier::sampler
