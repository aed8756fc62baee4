// Code-cache compaction while threads call the code: results stay right, whole pages become free,
// and code that was refused for lack of room then fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/workshop.h"

namespace uptier::test::relay_test {
namespace {

using Clock = std::chrono::steady_clock;

// A loop whose body depends on `n`, so that each method takes some lines of code: f(x) = x rounds
// of s = (s * 3 ^ n) + x, from n.
void mix(FunctionBuilder& b, uint64_t n) {
  Value own = b.i64(static_cast<int64_t>(n));
  loop_down(b, b.param(0), own, [&](Value sum, Value x) {
    Value tripled = b.binary(Opcode::kMul, sum, b.i64(3));
    Value mixed = b.binary(Opcode::kXor, tripled, b.i64(static_cast<int64_t>(n)));
    return b.binary(Opcode::kAdd, mixed, x);
  });
}

uint64_t mixed(uint64_t n, uint64_t x) {
  uint64_t sum = n;
  for (; x != 0; --x) sum = (sum * 3 ^ n) + x;
  return sum;
}

// A shop with methods m0, m1, ... that run mix().
struct Mixers {
  explicit Mixers(const Options& o) : shop(o) {}

  MethodId add() {
    uint64_t n = methods.size();
    methods.push_back(
        shop.add("m" + std::to_string(n), kOne, [n](FunctionBuilder& b) { mix(b, n); }));
    return methods.back();
  }
  void add(size_t count) {
    while (count-- != 0) add();
  }
  // Tests whether a call gives the right answer.
  bool answers(size_t n, uint64_t x) {
    Outcome o = shop.call(methods[n], {x});
    return o.ok() && o.bits == mixed(n, x);
  }
  // Removes all methods except each `kept`-th.
  void thin_out(size_t kept) {
    std::vector<MethodId> gone;
    for (size_t n = 0; n < methods.size(); ++n) {
      if (n % kept != 0) gone.push_back(methods[n]);
    }
    shop.runtime->remove_methods(gone);
  }
  Report report() { return shop.runtime->report(); }

  Workshop shop;
  std::vector<MethodId> methods;
};

Options many(std::initializer_list<std::pair<const char*, const char*>> more) {
  Options o = options({{"policy", "never"}, {"relay_gap_ms", "0"}, {"measure_rates", "off"}});
  for (auto [name, value] : more) EXPECT_TRUE(o.set(name, value).ok()) << name;
  return o;
}

// Tests whether there is a compaction record whose reason begins with `why`.
bool has_record(const Report& r, std::string_view why) {
  return std::ranges::any_of(r.decisions, [&](const DecisionRecord& d) {
    return d.action == "relay" && d.reason.rfind(why, 0) == 0;
  });
}

TEST(Relay, holes_are_joined_while_threads_call) {
  for (const char* workers : {"0", "1"}) {
    for (const char* tier : {"instrumented", "auto"}) {
      SCOPED_TRACE(std::string(tier) + ", workers " + workers);
      Mixers m(many({{"workers", workers}, {"tier", tier}, {"relay_holes", "0.4"}}));
      constexpr size_t kMethods = 800, kKept = 8;
      m.add(kMethods);
      {
        ThreadScope scope(*m.shop.runtime);
        for (size_t n = 0; n < kMethods; ++n) ASSERT_TRUE(m.answers(n, n % 7)) << n;
      }
      uint64_t before = m.report().code_bytes_in_service;
      std::atomic<bool> enough{false};
      std::atomic<uint64_t> wrong{0}, calls{0};
      std::vector<std::thread> threads;
      for (uint64_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          ThreadScope scope(*m.shop.runtime);
          for (uint64_t i = t; !enough; ++i) {
            size_t n = i % (kMethods / kKept) * kKept;
            wrong += !m.answers(n, i % 100);
            ++calls;
          }
        });
      }
      m.thin_out(kKept);
      auto joined = [&](const Report& r) {
        return r.relay.bodies >= kMethods / kKept / 2 && r.code_bytes_in_service < before / 2 &&
               has_record(r, "holes: ");
      };
      auto end = Clock::now() + std::chrono::minutes(2);
      while (!joined(m.report()) && Clock::now() < end) std::this_thread::yield();
      uint64_t so_far = calls;
      while (calls < so_far + 10'000 && Clock::now() < end) std::this_thread::yield();
      enough = true;
      for (std::thread& t : threads) t.join();
      EXPECT_EQ(wrong, 0u);
      {
        ThreadScope scope(*m.shop.runtime);
        for (size_t n = 0; n < kMethods; n += kKept) ASSERT_TRUE(m.answers(n, n % 9)) << n;
      }
      Report r = m.report();
      EXPECT_GE(r.relay.relays, 1u);
      EXPECT_GE(r.relay.bodies, kMethods / kKept / 2);  // bodies in full pages are not moved
      EXPECT_GT(r.relay.bytes, 0u);
      EXPECT_GE(r.relay.looks, 1u);
      EXPECT_LT(r.code_bytes_in_service, before / 2);
      EXPECT_TRUE(has_record(r, "holes: "));
      EXPECT_NE(r.text().find("code moved: "), std::string::npos);
      for (const MethodReport& method : r.methods) {
        EXPECT_LE(method.versions.size(), 8u) << method.name << ": what was moved is one version";
      }
    }
  }
}

TEST(Relay, nothing_moves_where_it_is_off_or_bodies_share_no_pages) {
  for (auto [name, value] :
       {std::pair{"relay_code", "off"}, {"pack_code", "off"}, {"relay_gap_ms", "1073741824"}}) {
    SCOPED_TRACE(name);
    Mixers m(
        many({{"workers", "0"}, {"relay_holes", "0.4"}, {"measure_rates", "on"}, {name, value}}));
    m.add(400);
    ThreadScope scope(*m.shop.runtime);
    for (size_t n = 0; n < 400; ++n) ASSERT_TRUE(m.answers(n, 3));
    m.thin_out(8);
    m.shop.runtime->quiescent();
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(m.answers(i % 50 * 8, 5));
    EXPECT_EQ(m.report().relay, RelayReport());
  }
}

class Told : public Workshop {
 public:
  using Workshop::Workshop;
  void gone(MethodId) noexcept override { ++told; }
  int told = 0;
};

// Both the old and the new code hold the method; moving must not release it.
TEST(Relay, hosts_of_methods_that_were_moved_are_told_once) {
  Told shop(options(
      {{"workers", "0"}, {"interval", "1"}, {"flush_first", "1"}, {"stress", "relay=all"}}));
  ThreadScope scope(*shop.runtime);
  MethodId m = shop.add("m", kOne, [](FunctionBuilder& b) { mix(b, 7); });
  MethodId other = shop.add("other", kOne, [](FunctionBuilder& b) { mix(b, 9); });
  for (uint64_t i = 0; i < 100; ++i) {
    shop.call(m, {i});
    shop.call(other, {i});
    shop.runtime->quiescent();
  }
  EXPECT_GT(shop.runtime->report().relay.bodies, 0u);
  MethodId retired[] = {m};
  shop.runtime->retire_methods(retired);
  shop.runtime->quiescent();
  shop.runtime->flush();
  EXPECT_EQ(shop.told, 1);
}

// A body of several pages.
void build_big(FunctionBuilder& b) {
  Value sum = b.param(0);
  for (int64_t k = 1; k <= 3000; ++k) {
    sum = b.binary(k % 2 == 0 ? Opcode::kAdd : Opcode::kXor, sum, b.i64(k * 1'000'003));
  }
  b.ret(sum);
}

uint64_t big(uint64_t x) {
  for (uint64_t k = 1; k <= 3000; ++k) x = k % 2 == 0 ? x + k * 1'000'003 : x ^ k * 1'000'003;
  return x;
}

TEST(Relay, what_the_budget_refused_is_accepted_when_holes_are_joined) {
  for (bool relay : {true, false}) {
    SCOPED_TRACE(relay);
    Options o = many({{"workers", "0"},
                      {"tier", "baseline"},
                      {"relay_gap_ms", "1073741824"},
                      {"measure_rates", "on"},
                      {"relay_code", relay ? "on" : "off"},
                      {"code_budget", "262144"}});
    Mixers m(o);
    ThreadScope scope(*m.shop.runtime);
    while (m.report().code_bytes_in_service + 3 * 4096 < o.code_budget) {
      m.add();
      ASSERT_TRUE(m.answers(m.methods.size() - 1, 3));
    }
    m.thin_out(4);
    m.shop.runtime->quiescent();
    Report before = m.report();
    ASSERT_GE(before.code_bytes_in_service + 4 * 4096, o.code_budget) << "no page is free";
    ASSERT_EQ(before.losses.evictions, 0u);
    MethodId added = m.shop.add("big", kOne, build_big);
    Outcome answer = m.shop.call(added, {12345});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer.bits, big(12345));
    for (size_t n = 0; n < m.methods.size(); n += 4) ASSERT_TRUE(m.answers(n, 11)) << n;
    Report r = m.report();
    EXPECT_EQ(r.relay.relays, relay ? 1u : 0u);
    EXPECT_EQ(r.losses.evictions == 0, relay) << r.losses.evictions << " evictions";
    EXPECT_EQ(has_record(r, "room was refused: "), relay);
  }
}

// A frame that loops in code that was moved stays in the old copy, whose page stays too.
TEST(Relay, a_frame_in_code_that_was_moved_runs_to_its_end) {
  for (const char* tier : {"baseline", "optimized"}) {
    SCOPED_TRACE(tier);
    Workshop shop(many({{"workers", "0"}, {"tier", tier}, {"stress", "relay=all"}}));
    static std::function<void()> event;
    MethodId waits = shop.add("waits", kOne, [](FunctionBuilder& b) {
      auto meet = +[](uint64_t x) -> uint64_t {
        if (event) std::exchange(event, nullptr)();
        return x;
      };
      Value args[] = {b.param(0)};
      Value x = b.call_host(host_function("meet", meet), args);
      b.ret(b.binary(Opcode::kMul, x, b.i64(5)));
    });
    ThreadScope scope(*shop.runtime);
    uint64_t inner = 0;
    event = [&] {
      for (uint64_t n = 1; n < 30; ++n) {
        inner += shop.call(shop.at_least(n), {n + 1}).bits;
        inner += shop.call(waits, {n}).bits;
      }
    };
    EXPECT_EQ(shop.call(waits, {9}).bits, 45u);
    EXPECT_EQ(inner, 29 * 30 / 2 * 6 + 29u);
    StressCount count = stress_count(shop.runtime->report(), "relay");
    EXPECT_GT(count.forced, 29u);
    EXPECT_EQ(count.forced, count.points);
    EXPECT_GT(shop.runtime->report().relay.bodies, 29u * 30 / 2);
  }
}

}  // namespace
}  // namespace uptier::test::relay_test
