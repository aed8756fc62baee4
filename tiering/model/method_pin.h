// MethodPin: keeps a removed method's object while its thread waits in a slow path.
//
// A slow path finds a method in service and reads it without a lock. Until the thread is quiescent,
// nothing that it may have found is freed. But a thread that waits may be passed over
// (thread.h: blocked), so a path that may wait pins its method first. Pins are a list in frames of
// the thread, innermost first, one list per stack.
//
//   Thread: the owner; others read the list while they look at the owner (thread.h).
#pragma once

#include <cassert>

namespace uptier::tiering {

struct Method;

class MethodPin {
 public:
  // The innermost pin of a stack. A stack that is left keeps its list.
  struct List {
    const MethodPin* innermost = nullptr;
  };

  // `list`: of the calling thread's current stack, which outlives this; null: does nothing.
  MethodPin(List* list, const Method& method) noexcept : list_(list), method_(&method) {
    if (list_ == nullptr) return;
    outer_ = list_->innermost;
    list_->innermost = this;
  }
  ~MethodPin() {
    if (list_ == nullptr) return;
    assert(list_->innermost == this);
    list_->innermost = outer_;
  }
  MethodPin(const MethodPin&) = delete;
  MethodPin& operator=(const MethodPin&) = delete;

  const Method* method() const { return method_; }
  const MethodPin* outer() const { return outer_; }

 private:
  List* const list_;
  const Method* const method_;
  const MethodPin* outer_ = nullptr;
};

}  // namespace uptier::tiering
