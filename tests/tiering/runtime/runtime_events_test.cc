// The events of a runtime: each kind at its time, in order, until the subscription ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/rare_path.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::runtime_events_test {
namespace {

using Kind = EventKind;

// Copies each record, then calls a function of the test.
class Keeper : public EventSubscriber {
 public:
  struct Kept {
    Event event;
    std::string text;
    DecisionRecord decision;
    std::thread::id thread;
  };
  explicit Keeper(std::function<void(const Event&)> then = {}) : then_(std::move(then)) {}
  void on_event(const Event& e) noexcept override {
    kept.push_back({e, std::string(e.text), e.decision == nullptr ? DecisionRecord{} : *e.decision,
                    std::this_thread::get_id()});
    if (then_) then_(e);
  }
  std::vector<Event> of(Kind k) const {
    std::vector<Event> found;
    for (const Kept& one : kept) {
      if (one.event.kind == k) found.push_back(one.event);
    }
    return found;
  }
  size_t count(Kind k) const { return of(k).size(); }

  std::vector<Kept> kept;

 private:
  std::function<void(const Event&)> then_;
};

Options alone(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Options o = options({{"policy", "always"},
                       {"workers", "0"},
                       {"interval", "2"},
                       {"adaptive", "off"},
                       {"deopt_cold", "on"},
                       {"cold_samples", "8"}});
  for (auto [name, value] : more) EXPECT_TRUE(o.set(name, value).ok()) << name;
  return o;
}

void run_short(IrRuntime& r) {
  for (int i = 0; i < 200; ++i) EXPECT_EQ(r.call("sum", {40}).bits, sum_of(40));
}

TEST(RuntimeEvents, a_version_is_compiled_installed_retired_and_freed_in_this_order) {
  Keeper all;
  std::map<uint64_t, std::vector<Kind>> lives;
  IrRuntime r(parse_or_die(kRare), alone());
  ASSERT_TRUE(r.runtime->subscribe(all).ok());
  {
    ThreadScope scope(*r.runtime);
    run_short(r);
  }
  MethodId m = r.method("sum");
  r.runtime->remove_methods({&m, 1});
  for (const Keeper::Kept& k : all.kept) {
    if (k.event.version == 0) continue;
    EXPECT_EQ(k.event.method, m);
    lives[k.event.version].push_back(k.event.kind);
  }
  ASSERT_GE(lives.size(), 3u);  // plain, instrumented, optimized
  const std::vector<Kind> life = {Kind::kCompiled, Kind::kInstalled, Kind::kRetired, Kind::kFreed};
  for (auto& [version, kinds] : lives) {
    std::erase_if(kinds, [](Kind k) { return k == Kind::kEntered || k == Kind::kLeft; });
    EXPECT_EQ(kinds, life) << version;
  }
  EXPECT_GE(all.count(Kind::kDescribed), 1u);
  EXPECT_EQ(all.count(Kind::kFirstCall), 1u);
  EXPECT_EQ(all.of(Kind::kRemoved).at(0).method, m);
  size_t installed = r.report_of("sum").versions.size();
  EXPECT_EQ(all.count(Kind::kInstalled), installed);
  uint64_t optimized = 0;
  for (const Event& e : all.of(Kind::kInstalled)) {
    optimized += e.tier == Tier::kOptimized;
    EXPECT_GT(e.bytes, 0u);
    EXPECT_GT(e.duration_ns, 0u);
  }
  EXPECT_GE(optimized, 1u);
}

TEST(RuntimeEvents, numbers_have_no_gaps_with_and_without_a_worker) {
  for (const char* workers : {"0", "1"}) {
    Keeper all;
    IrRuntime r(parse_or_die(kRare), alone({{"workers", workers}}));
    uint64_t last = *r.runtime->subscribe(all);
    {
      ThreadScope scope(*r.runtime);
      run_short(r);
      EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
    }
    r.runtime.reset();
    std::map<uint32_t, uint64_t> own;
    for (const Keeper::Kept& k : all.kept) {
      if (k.event.thread_sequence == 0) {
        EXPECT_EQ(k.event.sequence, ++last);
      } else {
        EXPECT_LE(k.event.sequence, last);
        EXPECT_EQ(k.event.thread_sequence, ++own[k.event.thread]);
      }
      EXPECT_NE(k.event.at_ns, 0u);
    }
    EXPECT_GT(all.kept.size(), 10u);
    EXPECT_EQ(all.kept.back().event.kind, Kind::kEnded);
  }
}

TEST(RuntimeEvents, frames_that_leave_code_and_enter_it_are_told_with_thread_and_version) {
  Keeper all;
  IrRuntime r(parse_or_die(kRare), alone());
  ASSERT_TRUE(r.runtime->subscribe(all).ok());
  ThreadScope scope(*r.runtime);
  run_short(r);
  EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  EXPECT_EQ(r.call("sum", {1'000'000}).bits, sum_of(1'000'000));
  r.runtime->flush();
  MethodReport report = r.report_of("sum");
  ASSERT_GE(report.left, 1u);
  EXPECT_EQ(all.count(Kind::kLeft), report.left);
  EXPECT_EQ(all.count(Kind::kEntered), report.osr_entries + report.osr_outs);
  std::set<uint64_t> optimized;
  for (const Keeper::Kept& k : all.kept) {
    const Event& e = k.event;
    if (e.kind == Kind::kInstalled && e.tier == Tier::kOptimized) optimized.insert(e.version);
    if (e.kind != Kind::kLeft) continue;
    EXPECT_EQ(optimized.count(e.version), 1u) << "it was told of before";
    EXPECT_EQ(e.thread, r.runtime->thread_number());
    EXPECT_EQ(e.method, r.method("sum"));
    EXPECT_EQ(k.text, "unreached");
  }
}

TEST(RuntimeEvents, decisions_and_losses_are_those_of_the_report) {
  Keeper all;
  Options o = alone({{"decisions_kept", "3"}, {"max_queue", "1"}});
  IrRuntime r(parse_or_die(kRare), o);
  ASSERT_TRUE(r.runtime->subscribe(all).ok());
  ThreadScope scope(*r.runtime);
  run_short(r);
  for (const char* n : {"2", "3", "4"}) ASSERT_TRUE(r.runtime->set("exit_retries", n).ok());
  r.runtime->flush();
  Report report = r.runtime->report();
  std::vector<std::string> told, kept;
  for (const Keeper::Kept& k : all.kept) {
    if (k.event.kind == Kind::kDecided) told.push_back(k.decision.action + k.decision.reason);
  }
  for (const DecisionRecord& d : report.decisions) kept.push_back(d.action + d.reason);
  ASSERT_EQ(kept.size(), 3u);
  ASSERT_GT(told.size(), 3u);
  EXPECT_EQ(std::vector<std::string>(told.end() - 3, told.end()), kept);
  EXPECT_EQ(report.losses.decisions_forgotten, told.size() - 3);
  EXPECT_EQ(report.losses.requests_dropped, all.count(Kind::kDropped));
}

TEST(RuntimeEvents, evictions_are_told_as_they_are_counted) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    std::string one = kRare;
    text += one.replace(one.find("@sum"), 4, "@sum" + std::to_string(i));
  }
  Keeper all;
  IrRuntime r(parse_or_die(text),
              alone({{"code_budget", "69632"}, {"pack_code", "off"}, {"policy", "never"}}));
  ASSERT_TRUE(r.runtime->subscribe(all).ok());
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 60; ++i) {
      EXPECT_EQ(r.call("sum" + std::to_string(i), {40}).bits, sum_of(40));
    }
  }
  LossReport losses = r.runtime->report().losses;
  ASSERT_GT(losses.evictions, 0u);
  EXPECT_EQ(all.count(Kind::kEvicted), losses.evictions);
  EXPECT_EQ(all.count(Kind::kRefused), losses.code_refused);
  EXPECT_EQ(all.count(Kind::kFailed), losses.compiles_failed);
}

TEST(RuntimeEvents, a_subscriber_reads_the_report_which_has_what_it_was_told) {
  IrRuntime* runtime = nullptr;
  uint64_t looked = 0;
  Keeper reads([&](const Event& e) {
    if (e.kind != Kind::kDecided) return;
    Report r = runtime->runtime->report();
    ASSERT_FALSE(r.decisions.empty());
    EXPECT_GE(r.decisions.back().sequence, e.decision->sequence);
    (void)runtime->runtime->profile();
    (void)runtime->runtime->loops();
    ++looked;
  });
  for (const char* workers : {"0", "1"}) {
    IrRuntime r(parse_or_die(kRare), alone({{"workers", workers}}));
    runtime = &r;
    looked = 0;
    ASSERT_TRUE(r.runtime->subscribe(reads).ok());
    {
      ThreadScope scope(*r.runtime);
      run_short(r);
      r.runtime->flush();
    }
    EXPECT_GT(looked, 0u);
    ASSERT_TRUE(r.runtime->unsubscribe(reads).ok());
  }
}

TEST(RuntimeEvents, calls_that_change_state_are_refused_in_a_subscriber) {
  struct Said {
    std::vector<std::string> lines;
  } said;
  Options o = alone();
  o.log_user = &said;
  o.log = [](void* user, LogLevel, std::string_view line) noexcept {
    static_cast<Said*>(user)->lines.emplace_back(line);
  };
  std::vector<std::string> errors;
  bool done = false;
  const IrRuntime* runtime = nullptr;
  Keeper changes([&](const Event&) {
    if (std::exchange(done, true)) return;
    Runtime& t = *runtime->runtime;
    MethodId m = runtime->method("sum");
    auto take = [&](const Status& s) { errors.push_back(s.ok() ? "ok" : s.error().message); };
    take(t.set("exit_retries", "2"));
    take(t.observe(Sampling::kOff));
    take(t.save_profile());
    take(t.attach());
    errors.push_back(t.ir(m).error().message);
    errors.push_back(t.add_method(*runtime->host, MethodInfo()).error().message);
    errors.push_back(t.create_stack(nullptr, 0).error().message);
    EXPECT_EQ(t.invoke(m, std::vector<uint64_t>{4}).trap.code, TrapCode::kBadCall);
    EXPECT_EQ(t.osr_enter(m, LoopId(0), {}, nullptr), std::nullopt);
    t.flush();
    t.detach();
    t.remove_methods({&m, 1});
    t.retire_methods({&m, 1});
  });
  IrRuntime r(parse_or_die(kRare), o);
  runtime = &r;
  ThreadScope scope(*r.runtime);
  ASSERT_TRUE(r.runtime->subscribe(changes).ok());
  EXPECT_EQ(r.call("sum", {40}).bits, sum_of(40));  // its first call compiles it and delivers the
                                                    // event here
  r.runtime->flush();
  ASSERT_TRUE(done);
  const std::string rule =
      ": refused in a subscriber of events, which may read the runtime but not change it";
  std::vector<std::string> expected;
  for (const char* call :
       {"set", "observe", "save_profile", "attach", "ir", "add_method", "create_stack"}) {
    expected.push_back(call + rule);
  }
  EXPECT_EQ(errors, expected);
  expected.clear();
  for (const char* call : {"flush", "detach", "remove_methods", "retire_methods"}) {
    expected.push_back(call + rule);
  }
  EXPECT_EQ(said.lines, expected);
  EXPECT_EQ(r.call("sum", {40}).bits, sum_of(40));  // the version is still in service, on an
                                                    // attached thread
}

TEST(RuntimeEvents, without_a_worker_the_thread_that_changed_the_state_delivers) {
  Keeper all;
  IrRuntime r(parse_or_die(kRare), alone());
  ASSERT_TRUE(r.runtime->subscribe(all, kinds_of(Kind::kDecided)).ok());
  ASSERT_TRUE(r.runtime->set("exit_retries", "2").ok());
  ASSERT_EQ(all.kept.size(), 1u);  // delivered when the call returns
  EXPECT_EQ(all.kept[0].decision.reason, "exit_retries=2");
  EXPECT_EQ(all.kept[0].thread, std::this_thread::get_id());
  std::thread other([&] { ASSERT_TRUE(r.runtime->set("exit_retries", "3").ok()); });
  std::thread::id id = other.get_id();
  other.join();
  ASSERT_EQ(all.kept.size(), 2u);
  EXPECT_EQ(all.kept[1].thread, id);
}

TEST(RuntimeEvents, flush_returns_when_all_before_it_was_delivered) {
  Keeper slow([](const Event&) { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
  IrRuntime r(parse_or_die(kRare), alone({{"workers", "1"}}));
  ASSERT_TRUE(r.runtime->subscribe(slow, kinds_of(Kind::kDecided)).ok());
  for (size_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(r.runtime->set("exit_retries", std::to_string(i % 9)).ok());
    r.runtime->flush();
    EXPECT_EQ(slow.kept.size(), i);
  }
}

TEST(RuntimeEvents, the_last_records_are_delivered_before_the_destructor_returns) {
  for (const char* workers : {"0", "1"}) {
    Keeper all;
    {
      IrRuntime r(parse_or_die(kRare), alone({{"workers", workers}}));
      ASSERT_TRUE(r.runtime->subscribe(all).ok());
      EXPECT_TRUE(r.runtime->attach().ok());
      run_short(r);  // the thread stays attached to the end
    }
    ASSERT_FALSE(all.kept.empty());
    EXPECT_EQ(all.kept.back().event.kind, Kind::kEnded);
    std::vector<Event> flushed = all.of(Kind::kFlushed);
    ASSERT_FALSE(flushed.empty());
    EXPECT_EQ(flushed.back().count, 200u);  // the last flush, by the destructor
  }
}

TEST(RuntimeEvents, a_subscriber_may_end_itself_and_a_late_one_begins_where_it_is_told) {
  Runtime* runtime = nullptr;
  Keeper* self = nullptr;
  Keeper once([&](const Event&) { EXPECT_TRUE(runtime->unsubscribe(*self).ok()); });
  self = &once;
  Keeper late;
  IrRuntime r(parse_or_die(kRare), alone());
  runtime = r.runtime.get();
  ASSERT_TRUE(r.runtime->subscribe(once).ok());
  EXPECT_EQ(r.runtime->subscribe(once).error().code, ErrorCode::kInvalidArgument);
  ThreadScope scope(*r.runtime);
  run_short(r);
  EXPECT_EQ(once.kept.size(), 1u);
  EXPECT_EQ(r.runtime->unsubscribe(once).error().code, ErrorCode::kNotFound);
  uint64_t from = *r.runtime->subscribe(late);
  EXPECT_GT(from, 5u);
  ASSERT_TRUE(r.runtime->set("exit_retries", "2").ok());
  ASSERT_FALSE(late.kept.empty());
  EXPECT_EQ(late.kept[0].event.sequence, from + 1);
}

TEST(RuntimeEvents, unsubscribing_while_guest_threads_run_is_synchronous) {
  IrRuntime r(parse_or_die(kRare), alone({{"workers", "1"}, {"exit_limit", "1000000"}}));
  std::atomic<bool> stop{false};
  std::vector<std::thread> guests;
  for (int t = 0; t < 2; ++t) {
    guests.emplace_back([&] {
      ThreadScope scope(*r.runtime);
      for (uint64_t n = 1; !stop; ++n) {
        uint64_t arg = n % 50 == 0 ? 2000 : 40;
        EXPECT_EQ(r.call("sum", {arg}).bits, sum_of(arg));
        if (n % 20 == 0) { EXPECT_TRUE(r.runtime->set("min_samples", "64").ok()); }
      }
    });
  }
  uint64_t calls = 0;
  for (int i = 0; i < 30; ++i) {
    std::atomic<bool> gone{false}, seen{false};
    uint64_t unguarded = 0;  // unsynchronized: the thread sanitizer detects a call after the end of
                             // the subscription
    Keeper k([&](const Event&) {
      EXPECT_FALSE(gone);
      ++unguarded;
      seen = true;
    });
    ASSERT_TRUE(r.runtime->subscribe(k).ok());
    while (!seen) std::this_thread::yield();
    ASSERT_TRUE(r.runtime->unsubscribe(k).ok());
    gone = true;
    calls += unguarded;
  }
  stop = true;
  for (auto& t : guests) t.join();
  EXPECT_GE(calls, 30u);
}

TEST(RuntimeEvents, the_worker_says_when_it_pauses_and_goes_on) {
  std::atomic<int> told{0};
  Keeper worker([&](const Event&) { ++told; });
  IrRuntime r(parse_or_die(kRare), alone({{"workers", "1"}}));
  ASSERT_TRUE(
      r.runtime->subscribe(worker, kinds_of(Kind::kWorkerPaused, Kind::kWorkerResumed)).ok());
  {
    ThreadScope scope(*r.runtime);
    for (int i = 0; i < 1000 && told < 4; ++i) {
      run_short(r);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  int before = told;
  EXPECT_GE(before, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(told - before, 20) << "what it says does not wake it";
  r.runtime.reset();
  for (size_t i = 1; i < worker.kept.size(); ++i) {
    EXPECT_NE(worker.kept[i].event.kind, worker.kept[i - 1].event.kind);
  }
}

}  // namespace
}  // namespace uptier::test::runtime_events_test
