// StackSampler and its clocks: at any rate, the weights add up to the processor time until the last
// sample.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "sampler/stack_sampler.h"

namespace uptier::test::stack_clock_test {
namespace {

using sampler::StackRecord;
using sampler::StackSampler;

uint64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void burn(uint64_t ns) {
  for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;) {
    volatile int sum = 0;
    for (int i = 0; i < 20'000; ++i) sum = sum + i;
  }
}

thread_local StackSampler* t_sampler = nullptr;
std::atomic<uint64_t> g_strange{0};

void on_signal(int, siginfo_t* info, void* machine) {
  if (t_sampler == nullptr || !t_sampler->is_mine(*info)) {
    ++g_strange;
  } else {
    t_sampler->take(*info, machine, false);
  }
}

// Samples the calling thread.
struct Sampled {
  static constexpr int kSignal = 45;
  StackSampler sampler;
  uint64_t walks = 0;
  uint64_t last_walk = 0;  // processor time of the thread

  explicit Sampled(SampleEngine engine) {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kSignal, &action, nullptr);
    clockid_t clock = 0;
    pthread_getcpuclockid(pthread_self(), &clock);
    sampler.set_up(
        [](void* me, void*, StackRecord&) noexcept {
          ++static_cast<Sampled*>(me)->walks;
          static_cast<Sampled*>(me)->last_walk = cpu_ns();
        },
        this, clock);
    t_sampler = &sampler;
    Status s = sampler.prepare(engine, kSignal, 1 << 20);
    EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().message);
  }
  ~Sampled() {
    sampler.change(0);
    t_sampler = nullptr;
  }

  // Returns the number and the total time of the waiting samples.
  std::pair<uint64_t, uint64_t> read() {
    std::pair<uint64_t, uint64_t> sum{0, 0};
    StackRecord r;
    while (sampler.read(r)) {
      ++sum.first;
      sum.second += r.weight_ns;
    }
    return sum;
  }
};

class StackClock : public testing::TestWithParam<SampleEngine> {};

// How far two readings of the thread's clock may lie apart, ns: a busy machine takes its time away.
constexpr double kNear = 5e6;

TEST_P(StackClock, weights_add_up_to_the_processor_time) {
  for (uint64_t hz : {100, 1000, 5000}) {
    Sampled s(GetParam());
    s.sampler.change(hz);
    uint64_t before = cpu_ns();
    burn(400'000'000);
    s.sampler.change(0);
    uint64_t end = cpu_ns();
    auto [samples, ns] = s.read();
    StackSampler::Counts c = s.sampler.counts();
    EXPECT_GT(samples, 10u) << hz;
    EXPECT_EQ(samples, s.walks);
    EXPECT_EQ(c.dropped, 0u);
    EXPECT_NEAR(static_cast<double>(ns), static_cast<double>(s.last_walk - before), kNear) << hz;
    EXPECT_NEAR(static_cast<double>(c.asked_ns), static_cast<double>(end - before), kNear) << hz;
  }
}

TEST_P(StackClock, a_stopped_clock_is_quiet_and_goes_on_at_another_rate) {
  Sampled s(GetParam());
  s.sampler.change(1000);
  burn(50'000'000);
  s.sampler.change(0);
  EXPECT_GT(s.read().first, 2u);
  burn(50'000'000);
  EXPECT_EQ(s.read().first, 0u);
  s.sampler.change(500);
  uint64_t before = cpu_ns();
  burn(100'000'000);
  s.sampler.change(0);
  auto [samples, ns] = s.read();
  EXPECT_GT(samples, 2u);
  EXPECT_NEAR(static_cast<double>(ns), static_cast<double>(s.last_walk - before), kNear);
}

// Another thread starts and stops the sampler in the middle of signals.
TEST_P(StackClock, another_thread_switches_it) {
  std::atomic<StackSampler*> sampler{nullptr};
  std::atomic<bool> end{false};
  uint64_t walks = 0;
  std::thread burner([&] {
    Sampled s(GetParam());
    sampler = &s.sampler;
    while (!end) burn(1'000'000);
    s.sampler.change(0);
    walks = s.walks;
  });
  while (sampler == nullptr) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) {
    sampler.load()->change(i % 2 == 0 ? 10'000 : 0);
    usleep(GetParam() == SampleEngine::kTaskClock ? 500 : 8000);  // two ticks of the kernel
  }
  end = true;
  burner.join();
  EXPECT_GT(walks, 10u);
  EXPECT_EQ(g_strange, 0u);
}

INSTANTIATE_TEST_SUITE_P(Engines, StackClock,
                         testing::Values(SampleEngine::kTaskClock, SampleEngine::kCpuTimer),
                         [](const auto& info) {
                           return info.param == SampleEngine::kTaskClock ? "task_clock"
                                                                         : "cpu_timer";
                         });

}  // namespace
}  // namespace uptier::test::stack_clock_test
