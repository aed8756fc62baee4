// From a loop of the host's interpreter into compiled code.
//
// The interpreter's frame is left where it is: the rest of the call runs as a call of its own,
// which takes the call's arguments and the address of the host's slots.
#include <vector>

#include "jit/code/routines.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {

int32_t* RuntimeImpl::loop_countdown(MethodId m) noexcept {
  return &sampler::current_context()->method(m.index()).loop_countdown;
}

uint64_t* RuntimeImpl::counters(MethodId m) noexcept {
  return sampler::current_context()->method(m.index()).slab;
}

// Learns which loops a method has before its first compilation.
bool RuntimeImpl::know_loops(Method& m) {
  std::lock_guard compile(m.compile_mutex);
  if (m.failed.load(std::memory_order_relaxed)) return false;
  if (m.shape_known) return true;
  Result<jit::Function> f = describe(m);
  if (f) return true;
  std::lock_guard lock(state_mutex_);
  m.last_error = f.error().message;
  losses_.compiles_failed++;
  m.failed.store(true, std::memory_order_relaxed);
  return false;
}

std::optional<Outcome> RuntimeImpl::osr_enter(MethodId id, LoopId loop,
                                              std::span<const uint64_t> args,
                                              const uint64_t* frame) {
  Method& m = method(id.index());
  AttachedThread* t = here();
  bool possible = t != nullptr && options_.tier == TierMode::kAuto && !m.info.own_code;
  if (!possible || !know_loops(m) || loop.index() >= m.loop_count) {
    *loop_countdown(id) = 1 << 30;
    return std::nullopt;
  }
  sampler::MethodState& s = t->state(id);
  sampler::LoopEvent e = sampler::loop_event_plain(s, counting_, false, t->context().random);
  if (e.flush) post(m, *t, sampler::NoteKind::kFlushIterations, loop.index());
  const Version* v = m.osr_from_host[loop.index()].load(std::memory_order_acquire);
  if (v == nullptr) return std::nullopt;

  m.osr_entries.fetch_add(1, std::memory_order_relaxed);
  // The next arrival asks at once.
  sampler::store_seen(s.iterations, sampler::iterations_so_far(s));
  s.loop_gap = s.loop_countdown = 1;
  Signature signature = m.info.signature;
  signature.params.push_back(Type::kRef);
  std::vector<uint64_t> words(args.begin(), args.end());
  words.push_back(reinterpret_cast<uintptr_t>(frame));
  return call(v->entry, signature, words);
}

}  // namespace uptier::tiering
