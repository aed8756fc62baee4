// Stacks: the misuse that is refused, the threads that own them, and the same through the C API.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/coroutine.h"
#include "tests/support/workshop.h"
#include "uptier/uptier.h"

namespace uptier::test::stacks_misuse_test {
namespace {

uint64_t yields(uint64_t x) {
  Coroutine::running()->yield();
  return x;
}

void once_yielding(FunctionBuilder& b) {
  b.ret(b.call_host(host_function("yields", yields), {b.param(0)}, kCallMayTrap));
}

// ---- From C -----------------------------------------------------------------------------------

TEST(Stacks, from_c_they_are_made_switched_to_and_destroyed) {
  uptier_runtime* runtime = nullptr;
  uptier_error error = {};
  StackMemory memory(1u << 20);
  uptier_stack* stack = nullptr;
  ASSERT_EQ(uptier_runtime_create(nullptr, nullptr, &runtime, nullptr), UPTIER_OK);
  auto create = [&](void* low, size_t bytes) {
    return uptier_stack_create(runtime, low, bytes, &stack, &error);
  };
  EXPECT_EQ(create(memory.low(), memory.bytes()), UPTIER_INVALID_ARGUMENT) << "not attached";
  ASSERT_EQ(uptier_runtime_attach(runtime, nullptr), UPTIER_OK);
  EXPECT_EQ(create(memory.low(), 4096), UPTIER_RESOURCE_EXHAUSTED);
  EXPECT_EQ(uptier_stack_create(nullptr, memory.low(), memory.bytes(), &stack, nullptr),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_stack_create(runtime, memory.low(), memory.bytes(), nullptr, nullptr),
            UPTIER_INVALID_ARGUMENT);
  ASSERT_EQ(create(memory.low(), memory.bytes()), UPTIER_OK) << error.message;
  static thread_local std::function<void()> body;
  ucontext_t inside, outside;
  uint64_t left = 0;
  body = [&] {
    left = uptier_stack_left();
    EXPECT_EQ(uptier_stack_destroy(runtime, stack, &error), UPTIER_INVALID_ARGUMENT);
    EXPECT_STREQ(error.message, "destroy_stack: the thread is on the stack");
    EXPECT_EQ(uptier_stack_switch(runtime, nullptr, &error), UPTIER_OK) << error.message;
  };
  getcontext(&inside);
  inside.uc_stack = {memory.low(), 0, memory.bytes()};
  inside.uc_link = &outside;
  makecontext(
      &inside, [] { body(); }, 0);
  EXPECT_EQ(uptier_stack_switch(runtime, stack, &error), UPTIER_OK) << error.message;
  swapcontext(&outside, &inside);
  EXPECT_LT(left, memory.bytes());
  EXPECT_GT(left, memory.bytes() / 2);
  EXPECT_EQ(uptier_stack_destroy(runtime, stack, &error), UPTIER_OK);
  EXPECT_EQ(uptier_stack_destroy(runtime, nullptr, &error), UPTIER_OK);
  EXPECT_EQ(uptier_stack_destroy(nullptr, nullptr, &error), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_stack_switch(nullptr, nullptr, &error), UPTIER_INVALID_ARGUMENT);
  uptier_runtime_detach(runtime);
  uptier_runtime_destroy(runtime);
}

// ---- Misuse -----------------------------------------------------------------------------------

void refused(const Status& s, const char* why) {
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(s.error().message.find(why), std::string::npos) << s.error().message;
}

TEST(Stacks, what_is_no_stack_is_refused) {
  Workshop w(options({{"tier", "baseline"}}));
  StackMemory memory(1u << 20);
  EXPECT_FALSE(w.runtime->create_stack(memory.low(), memory.bytes()).ok()) << "not attached";
  refused(w.runtime->switch_stack(nullptr), "not attached");
  ThreadScope scope(*w.runtime);
  EXPECT_FALSE(w.runtime->create_stack(nullptr, memory.bytes()).ok());
  EXPECT_FALSE(w.runtime->create_stack(memory.low(), SIZE_MAX).ok());
  Result<NativeStack*> small = w.runtime->create_stack(memory.low(), Options().stack_reserve);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(small.error().message.find("stack_reserve"), std::string::npos);
  EXPECT_TRUE(w.runtime->destroy_stack(nullptr).ok());
  EXPECT_TRUE(w.runtime->switch_stack(nullptr).ok()) << "to where it is";
}

TEST(Stacks, belong_to_the_thread_that_made_them) {
  Workshop w(options({{"tier", "baseline"}}));
  ThreadScope scope(*w.runtime);
  Coroutine c(*w.runtime, [] {});
  std::thread([&] {
    refused(w.runtime->destroy_stack(c.stack()), "another thread");
    ThreadScope there(*w.runtime);
    refused(w.runtime->switch_stack(c.stack()), "another thread");
    refused(w.runtime->destroy_stack(c.stack()), "another thread");
  }).join();
  c.resume();
  EXPECT_TRUE(c.ended());
}

TEST(Stacks, a_switch_from_where_the_thread_is_not_is_refused) {
  Workshop w(options({{"tier", "baseline"}}));
  ThreadScope scope(*w.runtime);
  MethodId add = w.adder(1);
  Coroutine c(*w.runtime, [&] {
    refused(w.runtime->destroy_stack(Coroutine::running()->stack()), "is on the stack");
    EXPECT_EQ(w.call(add, {4}).bits, 5u);
  });
  c.resume();
  EXPECT_TRUE(c.ended());
  StackMemory memory(1u << 20);
  Result<NativeStack*> stack = w.runtime->create_stack(memory.low(), memory.bytes());
  ASSERT_TRUE(stack.ok());
  ASSERT_TRUE(w.runtime->switch_stack(*stack).ok());
  refused(w.runtime->switch_stack(c.stack()), "not on the stack");  // it has not swapped
}

TEST(Stacks, a_thread_that_says_it_is_blocked_does_not_switch) {
  Workshop w(options({{"tier", "baseline"}}));
  ThreadScope scope(*w.runtime);
  Coroutine c(*w.runtime, [] {});
  {
    BlockedScope blocked(*w.runtime);
    refused(w.runtime->switch_stack(c.stack()), "blocked");
  }
  c.resume();
  EXPECT_TRUE(c.ended());
}

TEST(Stacks, threads_attach_on_the_stack_that_is_theirs) {
  Workshop w(options({{"tier", "baseline"}}));
  MethodId add = w.adder(1);
  StackMemory memory(1u << 20);
  static thread_local std::function<void()> body;
  ucontext_t inside, outside;
  Status attached;
  Outcome called;
  body = [&] {
    attached = w.runtime->attach();
    called = w.call(add, {1});
  };
  getcontext(&inside);
  inside.uc_stack = {memory.low(), 0, memory.bytes()};
  inside.uc_link = &outside;
  makecontext(
      &inside, [] { body(); }, 0);
  swapcontext(&outside, &inside);
  refused(attached, "not on its own stack");
  EXPECT_EQ(called.trap.code, TrapCode::kNoThread);
  EXPECT_EQ(w.call(add, {1}).bits, 2u);
}

TEST(Stacks, a_thread_may_end_with_stacks_that_are_suspended) {
  Workshop w(options({{"tier", "baseline"}}));
  MethodId produce = w.add("produce", kOne, once_yielding);
  std::thread([&] {
    ASSERT_TRUE(w.runtime->attach().ok());
    Coroutine c(*w.runtime, [&] { w.call(produce, {10}); });
    c.resume();
    w.runtime->detach();
    c.forget_stack();
  }).join();
  ThreadScope scope(*w.runtime);
  EXPECT_EQ(w.call(w.adder(2), {1}).bits, 3u);
}

}  // namespace
}  // namespace uptier::test::stacks_misuse_test
