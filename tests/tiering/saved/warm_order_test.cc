// The order in which the worker compiles the methods of an earlier run, while a thread calls them.
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/support/runtime_host.h"

namespace uptier::test::warm_order_test {
namespace {

constexpr uint32_t kMethods = 6;

jit::Module methods() {
  std::string text;
  for (uint32_t i = 0; i < kMethods; ++i) {
    text += "func @f" + std::to_string(i) + "(i32) -> i32 {\nb0(v0: i32):\n  return v0\n}\n";
  }
  return parse_or_die(text);
}

// Records which thread described which methods. The main thread, while it describes a chosen
// method, waits for the methods that the worker should describe meanwhile.
class OrderedHost : public Host {
 public:
  OrderedHost(Runtime& runtime, const jit::Module& module, uint32_t methods = kMethods)
      : module_(module) {
    methods_.reserve(kMethods);
    add(runtime, methods);
  }

  // Adds methods until there are `methods`.
  void add(Runtime& runtime, uint32_t methods) {
    for (auto i = static_cast<uint32_t>(methods_.size()); i < methods; ++i) {
      const jit::Function& f = module_.functions[i];
      Result<MethodId> m = runtime.add_method(*this, {{7, i}, f.name, f.signature(), nullptr});
      EXPECT_TRUE(m.ok());
      methods_.push_back(*m);
    }
  }

  Status build(MethodId m, FunctionBuilder& b) override {
    const uint32_t index = m.index() - methods_[0].index();
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() != main_) {
      by_worker_.push_back(index);
      change_.notify_all();
      BuilderAccess::adopt(b, jit::Function(module_.functions[index]));
      return {};
    }
    by_main_.push_back(index);
    change_.notify_all();
    if (index == at_ && wanted_ != 0) {
      change_.wait_for(lock, std::chrono::seconds(5),
                       [this] { return by_worker_.size() >= wanted_; });
    }
    BuilderAccess::adopt(b, jit::Function(module_.functions[index]));
    return {};
  }

  MethodId method(uint32_t i) const { return methods_[i]; }
  void wait_for(size_t n, uint32_t at) {
    wanted_ = n;
    at_ = at;
  }
  // Returns whether the worker has described `n` methods.
  bool await_worker(size_t n) {
    std::unique_lock lock(mutex_);
    return change_.wait_for(lock, std::chrono::seconds(5), [&] { return by_worker_.size() >= n; });
  }
  std::vector<uint32_t> by_main() {
    std::lock_guard lock(mutex_);
    return by_main_;
  }
  std::vector<uint32_t> by_worker() {
    std::lock_guard lock(mutex_);
    return by_worker_;
  }

 private:
  const jit::Module& module_;
  const std::thread::id main_ = std::this_thread::get_id();
  std::vector<MethodId> methods_;
  std::mutex mutex_;
  std::condition_variable change_;
  std::vector<uint32_t> by_worker_, by_main_;
  size_t wanted_ = 0;
  uint32_t at_ = 0;
};

class WarmOrder : public testing::Test {
 protected:
  WarmOrder() {
    char name[] = "/tmp/uptier-order-XXXXXX";
    dir_ = mkdtemp(name);
    run(0, {0, 1, 2, 3, 4, 5}, 0);
  }
  ~WarmOrder() override { std::filesystem::remove_all(dir_); }

  // Calls methods in this order, and returns the methods that the worker described. While it
  // describes the first, the main thread waits until the worker has described `wanted`.
  std::vector<uint32_t> run(uint64_t workers, const std::vector<uint32_t>& calls, size_t wanted) {
    Options o;
    o.profile = dir_ + "/p.upf";
    o.interval = 1;
    o.workers = workers;
    o.policy = workers == 0 ? PolicyMode::kNever : PolicyMode::kAuto;
    std::unique_ptr<Runtime> runtime = std::move(*Runtime::create(o));
    std::optional<OrderedHost> host_there;
    {
      ThreadScope scope(*runtime);  // before there are methods: the worker begins at the first call
      OrderedHost& host = host_there.emplace(*runtime, module_);
      if (wanted != 0) host.wait_for(wanted, calls[0]);
      for (const uint32_t i : calls) {
        EXPECT_EQ(runtime->invoke(host.method(i), std::vector<uint64_t>{i}).bits, i);
      }
      EXPECT_TRUE(runtime->save_profile().ok());
    }
    runtime.reset();
    return host_there->by_worker();
  }
  Options warm_options() const {
    Options o;
    o.profile = dir_ + "/p.upf";
    o.interval = 1;
    return o;
  }

  const jit::Module module_ = methods();
  std::string dir_;
};

TEST_F(WarmOrder, worker_begins_with_the_last_called) {
  EXPECT_EQ(run(1, {0, 1, 2, 3, 4, 5}, 5), (std::vector<uint32_t>{5, 4, 3, 2, 1}));
}

TEST_F(WarmOrder, worker_waits_for_no_caller) {
  std::vector<uint32_t> made;
  // The worker may have been faster than the caller.
  for (int i = 0; i < 20 && (made.empty() || made[0] == 5); ++i) made = run(1, {5, 0, 1}, 5);
  EXPECT_EQ(made, (std::vector<uint32_t>{4, 3, 2, 1, 0}));
}

TEST_F(WarmOrder, worker_begins_when_a_thread_attaches_to_methods) {
  std::optional<OrderedHost> there;
  std::unique_ptr<Runtime> runtime = std::move(*Runtime::create(warm_options()));
  OrderedHost& host = there.emplace(*runtime, module_);
  ThreadScope scope(*runtime);
  EXPECT_TRUE(host.await_worker(kMethods)) << "nobody has called anything";
  EXPECT_EQ(host.by_worker(), (std::vector<uint32_t>{5, 4, 3, 2, 1, 0}));
  runtime->flush();
  for (uint64_t i = 0; i < kMethods; ++i) {
    EXPECT_EQ(runtime->invoke(host.method(static_cast<uint32_t>(i)), {&i, 1}).bits, i);
  }
  EXPECT_EQ(host.by_main(), (std::vector<uint32_t>{}));
}

TEST_F(WarmOrder, worker_goes_on_at_the_first_call_with_methods_that_came_later) {
  std::optional<OrderedHost> there;
  std::unique_ptr<Runtime> runtime = std::move(*Runtime::create(warm_options()));
  OrderedHost& host = there.emplace(*runtime, module_, 3);
  ThreadScope scope(*runtime);
  ASSERT_TRUE(host.await_worker(3));
  runtime->flush();
  host.add(*runtime, kMethods);
  host.wait_for(5, 3);
  EXPECT_EQ(runtime->invoke(host.method(3), std::vector<uint64_t>{7}).bits, 7u);
  EXPECT_TRUE(host.await_worker(5));
  std::vector<uint32_t> made = host.by_worker();
  made.resize(5);  // the worker may compile 3 too, before its caller does
  EXPECT_TRUE(made == (std::vector<uint32_t>{2, 1, 0, 5, 4})) << testing::PrintToString(made);
}

}  // namespace
}  // namespace uptier::test::warm_order_test
