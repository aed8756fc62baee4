// coroutine.h: coroutines that a host might have (ucontext), on stacks that the runtime knows.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <functional>
#include <utility>

#include "uptier/runtime.h"

namespace uptier::test {

// Stack memory with a guard page below it.
class StackMemory {
 public:
  explicit StackMemory(size_t bytes) : bytes_(bytes) {
    at_ = static_cast<char*>(::mmap(nullptr, kGuard + bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_NE(at_, MAP_FAILED);
    EXPECT_EQ(::mprotect(at_, kGuard, PROT_NONE), 0);
  }
  ~StackMemory() { ::munmap(at_, kGuard + bytes_); }
  StackMemory(const StackMemory&) = delete;
  StackMemory& operator=(const StackMemory&) = delete;

  char* low() const { return at_ + kGuard; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kGuard = 4096;
  char* at_;
  size_t bytes_;
};

// A function that can be suspended in the middle and resumed there.
//
//   Thread: the one that created it.
class Coroutine {
 public:
  static constexpr size_t kBytes = 1u << 20;

  Coroutine(Runtime& runtime, std::function<void()> body, size_t bytes = kBytes)
      : Coroutine(runtime, std::move(body), std::make_unique<StackMemory>(bytes)) {}
  Coroutine(Runtime& runtime, std::function<void()> body, std::unique_ptr<StackMemory> memory)
      : runtime_(runtime), body_(std::move(body)), memory_(std::move(memory)) {
    Result<NativeStack*> stack = runtime.create_stack(memory_->low(), memory_->bytes());
    EXPECT_TRUE(stack.ok()) << stack.error().message;
    stack_ = *stack;
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = memory_->low();
    inside_.uc_stack.ss_size = memory_->bytes();
    makecontext(
        &inside_, [] { running()->run(); }, 0);
  }
  // Also drops the suspended frames.
  ~Coroutine() { EXPECT_TRUE(runtime_.destroy_stack(stack_).ok()); }
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;

  // Runs the body until it yields or ends. May be called from outside any coroutine or from another
  // one.
  void resume() {
    resumer_ = std::exchange(running(), this);
    switch_to(stack_);
    swapcontext(&outside_, &inside_);
  }
  // Suspends the coroutine and returns to its resumer. Works at any call depth inside the body.
  void yield() {
    running() = resumer_;
    switch_to(resumer_ == nullptr ? nullptr : resumer_->stack_);
    swapcontext(&inside_, &outside_);
  }
  bool ended() const { return ended_; }
  // Forgets the stack; for use after the thread has detached.
  void forget_stack() { stack_ = nullptr; }
  NativeStack* stack() const { return stack_; }
  bool holds(const void* p) const {
    auto* at = static_cast<const char*>(p);
    return at >= memory_->low() && at < memory_->low() + memory_->bytes();
  }

  // The coroutine that the thread is running; null outside of coroutines.
  static Coroutine*& running() {
    static thread_local Coroutine* running = nullptr;
    return running;
  }

 private:
  void switch_to(NativeStack* stack) {
    Status s = runtime_.switch_stack(stack);
    if (!s) ADD_FAILURE() << s.error().message;
  }
  void run() {
    body_();
    ended_ = true;
    yield();
  }

  Runtime& runtime_;
  std::function<void()> body_;
  std::unique_ptr<StackMemory> memory_;
  NativeStack* stack_ = nullptr;
  Coroutine* resumer_ = nullptr;
  ucontext_t inside_ = {}, outside_ = {};
  bool ended_ = false;
};

}  // namespace uptier::test
