// Stopping a guest from outside, wherever it is. UPTIER_INTERRUPTS=n makes n tries of each kind and
// prints how long they took.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/coroutine.h"
#include "tests/support/interrupt_runs.h"

namespace uptier::interrupt_test {
namespace {

using test::Guest;
using test::IrRuntime;
using test::kGuests;
using test::kInterruptHosts;
using test::options;
using test::parse_or_die;
using test::StoppedGuest;

using Settings = std::vector<std::pair<const char*, const char*>>;

struct Mode {
  const char* name;
  Settings settings;
};

const Mode kModes[] = {
    {"baseline", {{"tier", "baseline"}}},
    {"optimized", {{"tier", "optimized"}}},
    {"not_inlined", {{"tier", "optimized"}, {"inlining", "off"}}},
    {"auto", {}},
    {"every_call", {{"interval", "1"}, {"adaptive", "off"}}},
    {"instrumented", {{"tier", "instrumented"}}},
    {"osr", {{"stress", "osr=all"}}},
    {"copies", {{"stress", "copy=all"}}},
    {"osr_out", {{"stress", "osr=all,osr_out=all"}}},
    {"guards", {{"stress", "guard=all"}}},
    {"flips", {{"stress", "flip=all"}}},
    {"values", {{"stress", "values=all"}}},
    {"slow", {{"stress", "slow=all"}}},
    {"relay", {{"stress", "relay=all"}}},
    {"loops", {{"loops", "on"}}},
    {"blocks", {{"flow", "blocks"}, {"tier", "instrumented"}}},
};

Options options_of(const Mode& m) {
  Options o;
  for (auto [name, value] : m.settings) {
    Status s = o.set(name, value);
    EXPECT_TRUE(s) << s.error().message;
  }
  return o;
}

unsigned tries_each() {
  const char* n = std::getenv("UPTIER_INTERRUPTS");
  return n == nullptr ? 3 : static_cast<unsigned>(std::atoi(n));
}

void print(const std::string& what, std::vector<uint64_t> ns) {
  std::sort(ns.begin(), ns.end());
  auto at = [&](double q) { return double(ns[size_t(q * double(ns.size() - 1))]) / 1e6; };
  std::printf("%-24s %6zu tries  median %7.3f ms  99 %% %7.3f  99.9 %% %7.3f  most %7.3f\n",
              what.c_str(), ns.size(), at(0.5), at(0.99), at(0.999), at(1));
}

TEST(Interrupt, ends_every_kind_of_code_in_every_mode) {
  std::vector<uint64_t> all;
  for (const Mode& mode : kModes) {
    for (const Guest& guest : kGuests) {
      std::string name = std::string(mode.name) + ", " + guest.name;
      if (const char* only = std::getenv("UPTIER_ONLY"); only != nullptr && name != only) continue;
      SCOPED_TRACE(name);
      IrRuntime r(parse_or_die(guest.text, kInterruptHosts), options_of(mode));
      StoppedGuest stopped(r);
      std::vector<uint64_t> took;
      for (unsigned n = 0; n < tries_each(); ++n) {
        took.push_back(stopped.stop_after(std::chrono::microseconds(n * 997 % 3000)));
      }
      if (tries_each() > 3) print(std::string(mode.name) + ", " + guest.name, took);
      all.insert(all.end(), took.begin(), took.end());
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  if (tries_each() > 3) print("all", all);
}

// ---- Which invoke ends -------------------------------------------------------------------------

const Guest& guest(std::string_view name) {
  return *std::find_if(std::begin(kGuests), std::end(kGuests),
                       [&](const Guest& g) { return g.name == name; });
}

std::string spin_and(const char* more) { return std::string(guest("add").text) + more; }

TEST(Interrupt, an_idle_thread_is_left_alone) {
  IrRuntime r(parse_or_die(test::kSumText), {});
  ThreadScope scope(*r.runtime);
  uint32_t number = r.runtime->thread_number();
  ASSERT_NE(number, 0u);
  EXPECT_TRUE(r.runtime->interrupt(number));
  EXPECT_TRUE(r.runtime->interrupt());
  EXPECT_EQ(r.call("sum", {1000}).bits, 500500u);
  EXPECT_FALSE(interrupted());
}

TEST(Interrupt, a_thread_that_is_not_attached_is_not_found) {
  IrRuntime r(parse_or_die(test::kSumText), {});
  EXPECT_EQ(r.runtime->thread_number(), 0u);
  Status s = r.runtime->interrupt(7);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(r.runtime->interrupt());  // all of no invokes
}

TEST(Interrupt, ends_no_more_invokes_than_it_was_asked_to) {
  IrRuntime r(parse_or_die(test::kSumText), {});
  std::atomic<bool> over{false};
  std::atomic<uint64_t> ended{0}, others{0};
  std::thread runs([&] {
    ThreadScope scope(*r.runtime);
    while (!over) {
      Outcome o = r.call("sum", {20000});
      if (o.ok()) continue;
      (o.trap.code == TrapCode::kInterrupted ? ended : others)++;
    }
    EXPECT_EQ(r.call("sum", {1000}).bits, 500500u);
  });
  uint64_t asked = 0;
  // On a busy machine, the thread may not have run at all by the 300th.
  for (; asked < 300 || (ended == 0 && asked < 100'000); ++asked) {
    EXPECT_TRUE(r.runtime->interrupt());
    std::this_thread::sleep_for(std::chrono::microseconds(asked * 37 % 300));
  }
  over = true;
  runs.join();
  EXPECT_LE(ended, asked);
  EXPECT_GT(ended, 0u);
  EXPECT_EQ(others, 0u);
  EXPECT_EQ(r.runtime->report().losses.traps_lost, 0u);
}

// Parameters and results of the host functions below; one test uses them at a time.
struct Inner {
  IrRuntime* runtime = nullptr;
  std::string method = {};
  InvokeLimits limits = {};
  bool stops_itself = false;
  Outcome outcome = {};
};
Inner g_inner;

extern "C" void interrupt_test_inner() {
  Runtime& r = *g_inner.runtime->runtime;
  if (g_inner.stops_itself) {
    EXPECT_TRUE(r.interrupt(r.thread_number()));
    while (!interrupted()) ::usleep(100);
  }
  uint64_t arg = 100'000'000;
  g_inner.outcome = r.invoke(g_inner.runtime->method(g_inner.method), {&arg, 1}, g_inner.limits);
}

constexpr const char* kOuter = R"(
func @outer(i64) -> i64 {
b0(v0: i64):
  call_host @inner.() () may_trap
  v1 = const.i64 5
  return v1
}
func @outer_loop(i64) -> i64 {
b0(v0: i64):
  call_host @inner.() () may_trap
  jump b1
b1:
  loop_header 0 pc=0 []
  jump b1
}
)";

const HostFunction kInnerHosts[] = {
    kInterruptHosts[0],
    kInterruptHosts[1],
    kInterruptHosts[2],
    {"inner", reinterpret_cast<const void*>(interrupt_test_inner), {{}, Type::kNone}}};

class NestedInterrupt : public testing::Test {
 protected:
  Outcome run(const char* outer, Inner inner, InvokeLimits limits = {}) {
    g_inner = inner;
    g_inner.runtime = &r_;
    ThreadScope scope(*r_.runtime);
    uint64_t arg = 0;
    return r_.runtime->invoke(r_.method(outer), {&arg, 1}, limits);
  }
  IrRuntime r_{parse_or_die(spin_and(test::kSumText) + kOuter, kInnerHosts), {}};
};

constexpr uint64_t kMs = 1'000'000;

TEST_F(NestedInterrupt, an_invoke_that_began_later_goes_on) {
  Outcome o = run("outer_loop", {.method = "sum", .stops_itself = true});
  EXPECT_TRUE(g_inner.outcome.ok());
  EXPECT_EQ(g_inner.outcome.bits, 5000000050000000u);
  EXPECT_EQ(o.trap.code, TrapCode::kInterrupted);
}

TEST_F(NestedInterrupt, a_deadline_of_its_own_ends_the_inner_one_alone) {
  Outcome o = run("outer", {.method = "f", .limits = {.timeout_ns = 5 * kMs}});
  EXPECT_EQ(g_inner.outcome.trap.code, TrapCode::kInterrupted);
  EXPECT_TRUE(o.ok());
  EXPECT_EQ(o.bits, 5u);
}

TEST_F(NestedInterrupt, a_deadline_around_it_ends_both) {
  Outcome o = run("outer_loop", {.method = "f"}, {.timeout_ns = 5 * kMs});
  EXPECT_EQ(g_inner.outcome.trap.code, TrapCode::kInterrupted);
  EXPECT_EQ(o.trap.code, TrapCode::kInterrupted);
}

TEST_F(NestedInterrupt, a_later_deadline_does_not_move_an_earlier_one) {
  Outcome o = run("outer_loop", {.method = "f", .limits = {.timeout_ns = 3'600'000 * kMs}},
                  {.timeout_ns = 5 * kMs});
  EXPECT_EQ(g_inner.outcome.trap.code, TrapCode::kInterrupted);
  EXPECT_EQ(o.trap.code, TrapCode::kInterrupted);
}

TEST(Interrupt, a_deadline_that_is_not_met_leaves_nothing_behind) {
  IrRuntime r(parse_or_die(spin_and(test::kSumText), kInterruptHosts), {});
  ThreadScope scope(*r.runtime);
  uint64_t n = 1000, arg = 0;
  for (int i = 0; i < 100; ++i) {
    Outcome o = r.runtime->invoke(r.method("sum"), {&n, 1}, {.timeout_ns = 60'000 * kMs});
    EXPECT_EQ(o.bits, 500500u);
  }
  EXPECT_EQ(r.runtime->invoke(r.method("f"), {&arg, 1}, {.timeout_ns = kMs}).trap.code,
            TrapCode::kInterrupted);
  n = 50'000'000;  // takes several times the limit
  EXPECT_EQ(r.call("sum", {n}).bits, n * (n + 1) / 2);
}

// A dropped frame has entered its blocks but not left them, which edge counts alone do not show.
TEST(Interrupt, counts_of_code_that_was_ended_are_kept) {
  for (const char* flow : {"edges", "blocks"}) {
    Options o = options({{"tier", "instrumented"}, {"flow", flow}});
    IrRuntime r(parse_or_die(guest("leaf").text, kInterruptHosts), o);
    constexpr uint64_t kTries = 20;
    {
      StoppedGuest stopped(r);
      for (uint64_t n = 0; n < kTries; ++n) stopped.stop_after(std::chrono::microseconds(n * 50));
    }
    r.runtime->flush();
    std::vector<uint64_t> f = r.counts("f"), leaf = r.counts("leaf");
    ASSERT_GE(f.size(), 2u) << flow;
    ASSERT_GE(leaf.size(), 1u) << flow;
    EXPECT_EQ(f[0], kTries) << flow;
    // In each try at most one round was between its own count and the leaf's.
    EXPECT_LE(f[1], leaf[0] + kTries) << flow;
    EXPECT_GE(f[1] + kTries, leaf[0]) << flow;
  }
}

// ---- Stacks of the host's ----------------------------------------------------------------------

bool g_unheard = false;

// Interrupts its own thread and leaves the stack, either before or after the thread has noticed.
extern "C" void interrupt_test_yield() {
  Runtime& r = *g_inner.runtime->runtime;
  sigset_t all;
  sigfillset(&all);
  if (g_unheard) pthread_sigmask(SIG_BLOCK, &all, nullptr);
  EXPECT_TRUE(r.interrupt(r.thread_number()));
  while (!g_unheard && !interrupted()) ::usleep(100);
  test::Coroutine::running()->yield();
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGRTMIN + 4);
  pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
}

TEST(Interrupt, waits_for_the_stack_that_it_is_for) {
  const HostFunction hosts[] = {
      kInterruptHosts[0],
      {"inner", reinterpret_cast<const void*>(interrupt_test_yield), {{}, Type::kNone}}};
  for (bool unheard : {false, true}) {
    IrRuntime r(parse_or_die(std::string(test::kSumText) + kOuter, hosts), {});
    ThreadScope scope(*r.runtime);
    g_unheard = unheard;
    g_inner.runtime = &r;
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, nullptr, &before);
    TrapCode code = TrapCode::kNone;
    test::Coroutine c(*r.runtime, [&] { code = r.call("outer_loop", {0}).trap.code; });
    c.resume();
    EXPECT_FALSE(interrupted());
    EXPECT_EQ(r.call("sum", {10'000'000}).bits, 50000005000000u);
    c.resume();
    EXPECT_TRUE(c.ended());
    EXPECT_EQ(code, TrapCode::kInterrupted);
    EXPECT_EQ(r.call("sum", {1000}).bits, 500500u);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

// ---- The signal ------------------------------------------------------------------------------

TEST(Interrupt, reaches_a_thread_that_blocks_the_signal_and_keeps_its_mask) {
  IrRuntime r(parse_or_die(guest("add").text, kInterruptHosts), {});
  sigset_t all, before, after;
  sigfillset(&all);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
  {
    StoppedGuest stopped(r);  // its thread inherits the mask
    EXPECT_NE(stopped.stop_after(std::chrono::microseconds(500)), 0u);
    uint64_t arg = 0;
    EXPECT_EQ(r.runtime->invoke(r.method("f"), {&arg, 1}, {.timeout_ns = kMs}).trap.code,
              TrapCode::kInterrupted);
  }
  pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(sigismember(&after, SIGRTMIN + 4), 1);
}

std::atomic<int> g_foreign{0};
void on_foreign(int) { ++g_foreign; }

TEST(Interrupt, passes_foreign_signals_on_and_puts_the_handler_back) {
  int signal = SIGRTMIN + 5;
  struct sigaction mine = {}, before = {}, now = {};
  mine.sa_handler = on_foreign;
  sigaction(signal, &mine, &before);
  g_foreign = 0;
  {
    Options o;
    ASSERT_TRUE(o.set("interrupt_signal", std::to_string(signal)));
    IrRuntime r(parse_or_die(guest("add").text, kInterruptHosts), o);
    StoppedGuest stopped(r);
    EXPECT_NE(stopped.stop_after(std::chrono::microseconds(500)), 0u);
    ::raise(signal);
    EXPECT_EQ(g_foreign, 1);
  }
  sigaction(signal, &before, &now);
  EXPECT_EQ(now.sa_handler, on_foreign);
}

TEST(Interrupt, the_signal_must_be_a_real_time_one) {
  Options o;
  ASSERT_TRUE(o.set("interrupt_signal", "11"));
  EXPECT_FALSE(Runtime::create(o));
}

}  // namespace
}  // namespace uptier::interrupt_test
