#include "tiering/model/stack.h"

#include <cassert>
#include <utility>

namespace uptier {

void NativeStack::save(const sampler::ThreadContext& c) noexcept {
  limit = c.stack_limit;
  activation_ = c.activation;
  exits_to_host_ = c.exits_to_host;
  pending_trap_ = c.pending_trap;
  trap_location_ = c.trap_location;
  trap_method_ = c.trap_method;
  trap_detail_ = c.trap_detail;
  trap_pc_ = c.trap_pc;
  trap_return_ = c.trap_return;
}

void NativeStack::restore(sampler::ThreadContext& c) const noexcept {
  c.stack_limit = limit;
  c.activation = activation_;
  c.exits_to_host = exits_to_host_;
  c.pending_trap = pending_trap_;
  c.trap_location = trap_location_;
  c.trap_method = trap_method_;
  c.trap_detail = trap_detail_;
  c.trap_pc = trap_pc_;
  c.trap_return = trap_return_;
}

namespace tiering {

void ThreadStacks::set_own(const void* thread, uintptr_t low, uintptr_t high) {
  assert(own_ == nullptr && low <= high);
  own_ = std::make_unique<NativeStack>(thread, low, high);
  current_ = own_.get();
}

NativeStack& ThreadStacks::add(std::unique_ptr<NativeStack> stack) {
  assert(stack->top == 0 && stack->low < stack->high);
  stack->place = others_.size();
  others_.push_back(std::move(stack));
  return *others_.back();
}

void ThreadStacks::remove(NativeStack& stack) {
  assert(&stack != current_ && stack.place < others_.size());
  assert(others_[stack.place].get() == &stack && (stack.top == 0 || suspended_ != 0));
  if (stack.top != 0) --suspended_;
  size_t place = stack.place;
  std::swap(others_[place], others_.back());
  others_[place]->place = place;
  others_.pop_back();
}

void ThreadStacks::change(NativeStack& to, uintptr_t top, sampler::ThreadContext& c) noexcept {
  NativeStack& from = *current_;
  assert(&to != current_ && to.thread == from.thread);
  assert(from.top == 0 &&
         (from.high == 0 || from.holds(top)));  // it was running, and its frames are on it
  from.save(c);
  from.top = top;
  if (to.top == 0) ++suspended_;  // otherwise one stack was suspended and one resumed
  to.top = 0;
  to.restore(c);
  current_ = &to;
}

}  // namespace tiering
}  // namespace uptier
