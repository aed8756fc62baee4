// Methods come and go.
#include "tiering/runtime_impl.h"

namespace uptier::tiering {

Result<MethodId> RuntimeImpl::add_method(Host& host, MethodInfo info) {
  std::lock_guard lock(state_mutex_);
  uint32_t index = method_count_.load(std::memory_order_relaxed);
  if (index >= options_.max_methods) {
    return Error{ErrorCode::kResourceExhausted, info.name + ": the runtime holds max_methods = " +
                                                    std::to_string(options_.max_methods) +
                                                    " methods already"};
  }
  if (Status s = stubs_->ensure(MethodId(index)); !s) return s.error();
  owned_methods_.push_back(std::make_unique<Method>(MethodId(index), host, std::move(info)));
  Method& m = *owned_methods_.back();
  if (m.info.host_entry != nullptr) stubs_->set_target(m.id, m.info.host_entry);
  methods_[index].store(&m, std::memory_order_release);  // pairs with method()
  method_count_.store(index + 1, std::memory_order_release);
  return m.id;
}

void RuntimeImpl::remove_methods(std::span<const MethodId> ids) {
  {
    std::lock_guard lock(state_mutex_);
    drain_locked();
    for (MethodId id : ids) {
      Method& m = method(id.index());
      if (!m.removed) flush_removed_locked(m);
      m.removed = true;
      fast_->set_entry(id.index(), nullptr);
      queue_.remove(id);
    }
  }
  // The host may die when this returns: wait for a compilation that is under way.
  for (MethodId id : ids) std::lock_guard wait(method(id.index()).compile_mutex);

  std::lock_guard lock(state_mutex_);
  for (MethodId id : ids) {
    for (auto& v : method(id.index()).versions) {
      if (!v->retired) reclaimer_.retire(*v);
    }
  }
  reclaim_locked();
}

// The final flush of one method, for all threads: none of them runs it any more.
void RuntimeImpl::flush_removed_locked(Method& m) {
  for (auto& t : threads_) {
    sampler::MethodState& s = t->state(m.id);
    if (s.call_gap == 0 && s.loop_gap == 0 && s.slab == nullptr) continue;
    std::span<const uint64_t> counts = counters(m, s);
    sampler::Note n = make_note(m, *t, sampler::NoteKind::kFlushFinal);
    observer_.take(m, t->number(), n, counts);
  }
}

const void* RuntimeImpl::entry_address(MethodId m) const { return stubs_->stub(m); }

}  // namespace uptier::tiering
