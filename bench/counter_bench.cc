// What does a counted call cost in each counter mode, with one thread and with two in the same
// methods, and how wrong are the counts?
//
// Bad news would be: per_thread above 1.5 times its cost with one thread when there are two, an
// error other than 0 of per_thread, interlocked or dual, or one above 0.05 of scalable.
//
//   ns_per_call   CPU time of a thread by its calls, the mean of the threads
//   at_once       threads that ran at the same time, on average: where it is not near their number,
//                 the machine was busy, and nothing was contended for
//   error         sum |counted - made| / sum made over the blocks of the method
//   own_error     what the runtime reports of dual: scalable counters against exact ones
#include <benchmark/benchmark.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/parse.h"
#include "tools/ir_host.h"
#include "uptier/runtime.h"

namespace {

using namespace uptier;

// Half of the calls take either path.
constexpr const char* kSplit = R"(
func @split(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  v2 = and.i32 v0, v1
  v3 = add.i32 v0, v1
  branch v2, b1, b2
b1:
  jump b3
b2:
  jump b3
b3:
  return v3
}
)";

constexpr uint64_t kCalls = 1u << 20;  // of each thread in one iteration; even, so halves are exact

// A runtime and its one method, for all threads of one benchmark.
class Counting {
 public:
  explicit Counting(CounterMode mode) : module_(std::move(*jit::parse_module(kSplit))) {
    Options o;
    o.tier = TierMode::kInstrumented;
    o.policy = PolicyMode::kNever;
    o.counters = mode;
    auto runtime = Runtime::create(o);
    runtime_ = std::move(*runtime);
    auto host = tools::IrHost::add(*runtime_, module_);
    host_ = std::move(*host);
    split_ = runtime_->entry<uint32_t(uint32_t)>(host_->method(MethodId(0)));
  }

  // Calls the method on that many threads at once; returns the CPU seconds of all of them together.
  double run(uint32_t threads) {
    std::atomic<uint32_t> waiting{threads};
    std::vector<double> seconds(threads);
    std::vector<std::thread> running;
    for (uint32_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        ThreadScope scope(*runtime_);
        waiting.fetch_sub(1);
        while (waiting.load() != 0) std::this_thread::yield();
        seconds[i] = call_many();
      });
    }
    for (std::thread& t : running) t.join();
    made_ += threads * kCalls;
    double sum = 0;
    for (double s : seconds) sum += s;
    return sum;
  }
  double error() const {
    const Profile p = runtime_->profile();
    const MethodProfile& m = p.methods.begin()->second;
    constexpr double kShares[] = {1, 0.5, 0.5, 1};
    double wrong = 0;
    for (SiteId block = 1; block <= 4; ++block) {
      double made = kShares[block - 1] * static_cast<double>(made_);
      wrong += std::abs(static_cast<double>(*m.count(SlotKind::kBlock, block)) - made);
    }
    return wrong / (3 * static_cast<double>(made_));
  }
  double own_error() const { return runtime_->report().methods[0].dual_error.value_or(0); }

 private:
  double call_many() const {
    double before = cpu_seconds();
    uint32_t x = 0;
    for (uint64_t i = 0; i < kCalls; ++i) x = split_(x);
    benchmark::DoNotOptimize(x);
    return cpu_seconds() - before;
  }
  static double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }

  jit::Module module_;
  std::unique_ptr<tools::IrHost> host_;
  std::unique_ptr<Runtime> runtime_;  // destroyed before its host
  uint32_t (*split_)(uint32_t) = nullptr;
  uint64_t made_ = 0;
};

void counters(benchmark::State& state, CounterMode mode) {
  Counting counting(mode);
  auto threads = static_cast<uint32_t>(state.range(0));
  double seconds = 0, wall = 0;
  for (auto _ : state) {
    auto start = std::chrono::steady_clock::now();
    double spent = counting.run(threads);
    wall += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    seconds += spent;
    state.SetIterationTime(spent / threads);
  }
  double calls = static_cast<double>(state.iterations()) * threads * static_cast<double>(kCalls);
  state.counters["ns_per_call"] = seconds * 1e9 / calls;
  state.counters["at_once"] = seconds / wall;
  state.counters["error"] = counting.error();
  if (mode == CounterMode::kDual) state.counters["own_error"] = counting.own_error();
}

#define COUNTERS(name, mode)                           \
  BENCHMARK_CAPTURE(counters, name, CounterMode::mode) \
      ->ArgName("threads")                             \
      ->Arg(1)                                         \
      ->Arg(2)                                         \
      ->UseManualTime()                                \
      ->Unit(benchmark::kMillisecond)
COUNTERS(per_thread, kPerThread);
COUNTERS(interlocked, kInterlocked);
COUNTERS(scalable, kScalable);
COUNTERS(racing, kRacing);
COUNTERS(dual, kDual);
#undef COUNTERS

}  // namespace
