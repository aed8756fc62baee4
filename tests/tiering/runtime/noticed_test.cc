// Mistakes of embedders that would have no visible effect are counted, logged once, or refused.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>
#include <thread>

#include "tests/support/workshop.h"
#include "uptier/profile_file.h"

namespace uptier::test::noticed_test {
namespace {

// The messages that the library logs.
struct Lines {
  std::mutex mutex;
  std::vector<std::pair<LogLevel, std::string>> all;

  static void add(void* to, LogLevel level, std::string_view line) {
    auto& lines = *static_cast<Lines*>(to);
    std::lock_guard lock(lines.mutex);
    EXPECT_EQ(line.data()[line.size()], 0) << "C reads it";
    lines.all.emplace_back(level, line);
  }
  Options in(Options o) {
    o.log = &Lines::add;
    o.log_user = this;
    return o;
  }
  int with(std::string_view part) {
    std::lock_guard lock(mutex);
    int n = 0;
    for (const auto& [level, line] : all) n += line.find(part) != std::string::npos;
    return n;
  }
};

MethodReport row_of(const Runtime& r, MethodId id) {
  for (const MethodReport& m : r.report().methods) {
    if (m.method == id) return m;
  }
  return {};
}

// ---- Threads --------------------------------------------------------------------------------------

TEST(Noticed, calls_on_threads_that_are_not_attached_are_counted_and_said_once) {
  for (const char* workers : {"0", "1"}) {
    Lines lines;
    {
      Workshop w(lines.in(options({{"workers", workers}})));
      auto* add = w.runtime->entry<uint64_t(uint64_t)>(w.adder(1));
      EXPECT_EQ(w.runtime->report().losses.calls_unattached, 0u);
      constexpr uint64_t kCalls = 200'000;
      for (uint64_t i = 0; i < kCalls; ++i) ASSERT_EQ(add(i), i + 1);
      EXPECT_EQ(w.runtime->report().losses.calls_unattached, kCalls);
      w.runtime->flush();
      EXPECT_NE(w.runtime->report().text().find("calls on threads that are not attached 200000"),
                std::string::npos);
    }
    EXPECT_EQ(lines.with("not attached"), 1) << workers;
  }
}

TEST(Noticed, attached_threads_lose_no_calls) {
  Lines lines;
  {
    Workshop w(lines.in(options({{"workers", "0"}})));
    MethodId m = w.adder(1);
    w.call(m, {1});  // attaches the thread
    ThreadScope scope(*w.runtime);
    auto* add = w.runtime->entry<uint64_t(uint64_t)>(m);
    for (uint64_t i = 0; i < 1000; ++i) add(i);
    EXPECT_EQ(w.runtime->report().losses.calls_unattached, 0u);
  }
  EXPECT_EQ(lines.all.size(), 0u);
}

TEST(Noticed, a_scope_that_outlives_its_runtime_ends_in_a_message) {
  Lines lines;
  {
    auto w = std::make_unique<Workshop>(lines.in(options({{"workers", "0"}})));
    ThreadScope scope(*w->runtime), again(*w->runtime);
    w.reset();
    EXPECT_EQ(lines.with("inside of a ThreadScope"), 1);
  }
  {
    auto w = std::make_unique<Workshop>(lines.in(options({{"workers", "0"}})));
    EXPECT_TRUE(w->runtime->attach().ok());
    BlockedScope blocked(*w->runtime);
    w.reset();
    EXPECT_EQ(lines.with("says that it is blocked"), 1);
  }
}

TEST(Noticed, a_thread_that_attached_without_a_scope_may_destroy_the_runtime) {
  Lines lines;
  auto w = std::make_unique<Workshop>(lines.in(options({{"workers", "0"}})));
  EXPECT_TRUE(w->runtime->attach().ok());
  w.reset();
  EXPECT_EQ(lines.all.size(), 0u);
}

TEST(NoticedDeathTest, a_runtime_that_others_are_attached_to_says_so_in_the_log) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto die = [] {
    Options o = options({{"workers", "0"}});
    o.log = [](void*, LogLevel level, std::string_view line) {
      std::fprintf(stderr, "log %d: %s\n", static_cast<int>(level), line.data());
    };
    auto w = std::make_unique<Workshop>(o);
    std::thread([&] {
      ThreadScope scope(*w->runtime);
      std::thread([&] { w.reset(); }).join();
    }).join();
  };
  EXPECT_DEATH(die(), "log 2: a runtime is destroyed that 1 other threads are attached to");
}

// ---- Entries --------------------------------------------------------------------------------------

TEST(Noticed, an_entry_of_another_signature_is_null_and_both_are_logged) {
  Lines lines;
  Workshop w(lines.in(options({{"workers", "0"}})));
  MethodId m = w.adder(1);
  EXPECT_EQ(w.runtime->entry<double(double, double)>(m), nullptr);
  EXPECT_EQ(lines.with("entry of add1: asked for as (f64, f64)->f64, the method is (i64)->i64"), 1)
      << lines.all.back().second;
  ThreadScope scope(*w.runtime);
  EXPECT_EQ(w.runtime->entry<uint64_t(uint64_t)>(m)(4), 5u);
  EXPECT_EQ(lines.all.size(), 1u);
}

// ---- Keys -----------------------------------------------------------------------------------------

MethodId add_keyed(Workshop& w, MethodKey key, const std::string& name, uint64_t n) {
  struct Keyed : Host {
    Status build(MethodId, FunctionBuilder& b) override {
      Block end = b.create_block();
      if (branches) {
        Block other = b.create_block();
        b.branch(b.param(0), end, other);
        b.seal(other);
        b.switch_to(other);
      }
      b.jump(end);
      b.seal(end);
      b.switch_to(end);
      b.ret(b.i64(7));
      return {};
    }
    bool branches = false;
  };
  static Keyed plain, branching;
  branching.branches = true;
  MethodInfo info{key, name, {{Type::kI32}, kLong}};
  Result<MethodId> m = w.runtime->add_method(n == 0 ? plain : branching, info);
  EXPECT_TRUE(m.ok());
  return *m;
}

TEST(Noticed, methods_without_a_key_get_one_each) {
  Lines lines;
  Workshop w(lines.in(options({{"workers", "0"}, {"interval", "1"}, {"tier", "instrumented"}})));
  ThreadScope scope(*w.runtime);
  std::vector<MethodId> all;
  for (const char* name : {"f", "g", "f", ""})
    all.push_back(add_keyed(w, {}, name, all.size() % 2));
  for (MethodId m : all) w.call(m, {1});
  w.runtime->flush();
  std::set<MethodKey> keys;
  for (MethodId m : all) keys.insert(row_of(*w.runtime, m).key);
  EXPECT_EQ(keys.size(), 4u);
  EXPECT_FALSE(keys.contains(MethodKey{}));
  EXPECT_EQ(w.runtime->report().losses.keys_shared, 0u);
  EXPECT_EQ(lines.all.size(), 0u);
}

TEST(Noticed, keys_that_are_made_are_the_same_in_each_process_and_given_again) {
  std::vector<MethodKey> keys[2];
  for (auto& seen : keys) {
    Workshop w(options({{"workers", "0"}}));
    for (const char* name : {"f", "f", "g"}) {
      MethodId m = add_keyed(w, {}, name, 0);
      w.call(m, {1});
      seen.push_back(row_of(*w.runtime, m).key);
    }
    MethodId again = add_keyed(w, {}, "h", 0);
    w.remove(again);
    again = add_keyed(w, {}, "h", 0);
    w.call(again, {1});
    seen.push_back(row_of(*w.runtime, again).key);
    EXPECT_EQ(seen.back().function_index, 0u);
  }
  EXPECT_EQ(keys[0], keys[1]);
}

TEST(Noticed, methods_that_share_a_key_are_counted_where_name_or_body_differs) {
  Lines lines;
  Workshop w(lines.in(options({{"workers", "0"}})));
  ThreadScope scope(*w.runtime);
  auto shared = [&] { return w.runtime->report().losses.keys_shared; };
  // Two instances of one module.
  w.call(add_keyed(w, {1, 1}, "f", 0), {1});
  w.call(add_keyed(w, {1, 1}, "f", 0), {1});
  EXPECT_EQ(shared(), 0u);
  // A different body, which is noticed when it is described.
  MethodId other = add_keyed(w, {1, 1}, "f", 1);
  EXPECT_EQ(shared(), 0u);
  w.call(other, {1});
  EXPECT_EQ(shared(), 1u);
  // A different name and a different body: one method is counted.
  w.call(add_keyed(w, {1, 1}, "g", 1), {1});
  EXPECT_EQ(shared(), 2u);
  w.runtime->flush();
  EXPECT_EQ(lines.with("the same MethodInfo::key"), 1);
}

// ---- Bodies ---------------------------------------------------------------------------------------

// Describes a body with a different number of blocks each time.
struct Unsteady : Host {
  Status build(MethodId, FunctionBuilder& b) override {
    for (uint64_t i = 0; i <= builds % 7; ++i) {
      Block next = b.create_block(), other = b.create_block();
      b.branch(b.binary(Opcode::kLtU, b.param(0), b.i64(static_cast<int64_t>(i))), next, other);
      b.seal(next);
      b.seal(other);
      b.switch_to(other);
      b.ret(b.param(0));
      b.switch_to(next);
    }
    ++builds;
    b.ret(b.i64(0));
    return {};
  }
  uint64_t builds = 0;
};

TEST(Noticed, a_body_that_is_described_differently_each_time_is_given_up) {
  for (const char* workers : {"0", "1"}) {
    Lines lines;
    Unsteady host;
    Workshop w(lines.in(options({{"workers", workers}})));
    ThreadScope scope(*w.runtime);
    MethodId m = *w.runtime->add_method(host, MethodInfo{{1, 1}, "unsteady", kOne});
    for (uint64_t i = 0; i < 3000; ++i) {
      Outcome o = w.call(m, {i + 1});
      ASSERT_TRUE(o.ok() && o.bits == i + 1);
      if (i % 16 == 0) w.runtime->flush();
    }
    EXPECT_LE(host.builds, 6u) << workers;
    LossReport losses = w.runtime->report().losses;
    EXPECT_EQ(losses.unstable_bodies, 1u);
    EXPECT_NE(row_of(*w.runtime, m).last_error.find("the runtime stops compiling it"),
              std::string::npos);
    w.runtime->flush();
    EXPECT_EQ(lines.with("describes a method differently each time"), 1);
  }
}

TEST(Noticed, reports_count_what_optimized_code_ran) {
  Workshop w(options({{"workers", "0"}, {"policy", "always"}, {"flush_first", "4"}}));
  ThreadScope scope(*w.runtime);
  MethodId outer = w.caller_of(w.at_least(3));
  for (uint64_t i = 0; i < 2000; ++i) w.call(outer, {i});
  w.runtime->flush();
  const MethodReport row = row_of(*w.runtime, outer);
  EXPECT_EQ(row.tier, Tier::kOptimized);
  EXPECT_FALSE(row.behind);
  const Profile profile = w.runtime->profile();
  const MethodProfile* m = profile.find(row.key);
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->calls, 2000u);
  ASSERT_TRUE(m->estimate(SlotKind::kBlock, 1).has_value());
  EXPECT_NEAR(m->estimate(SlotKind::kBlock, 1)->total, 2000, 1);
}

TEST(Noticed, reports_of_optimized_code_say_that_they_are_behind) {
  Workshop w(options(
      {{"workers", "0"}, {"policy", "always"}, {"flush_first", "4"}, {"count_optimized", "off"}}));
  ThreadScope scope(*w.runtime);
  MethodId leaf = w.at_least(3), outer = w.caller_of(leaf), never = w.at_least(4);
  for (uint64_t i = 0; i < 2000; ++i) w.call(outer, {i});
  w.call(never, {1});
  w.runtime->flush();
  EXPECT_EQ(row_of(*w.runtime, outer).tier, Tier::kOptimized);
  EXPECT_TRUE(row_of(*w.runtime, outer).behind);
  EXPECT_TRUE(row_of(*w.runtime, leaf).behind);
  EXPECT_FALSE(row_of(*w.runtime, never).behind);
  EXPECT_NE(w.runtime->report().text().find("fall behind: optimized code ran that counts nothing"),
            std::string::npos);
  // Profiles and profile files report the same.
  const Profile profile = w.runtime->profile();
  const std::vector<std::byte> bytes = profile_to_file(profile, {});
  Result<ProfileFile> file = profile_from_file(bytes);
  ASSERT_TRUE(file.ok());
  const Profile* const told[] = {&profile, &file->profile};
  for (const Profile* p : told) {
    for (MethodId m : {outer, leaf, never}) {
      const MethodProfile* seen = p->find(row_of(*w.runtime, m).key);
      ASSERT_NE(seen, nullptr);
      EXPECT_EQ(seen->behind, m != never);
    }
  }
}

// While this object exists, no file can grow, as on a full disk.
class FullDisk {
 public:
  FullDisk() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(Noticed, names_of_code_that_a_file_lacks_are_counted_and_said_once) {
  for (const char* tool : {"perf_map", "jit_dump"}) {
    Lines lines;
    Workshop w(lines.in(options({{"workers", "0"}, {"tier", "baseline"}, {tool, "on"}})));
    ThreadScope scope(*w.runtime);
    w.call(w.at_least(3), {1});
    w.runtime->flush();
    EXPECT_EQ(w.runtime->report().losses.code_names_lost, 0u) << tool;
    EXPECT_TRUE(lines.all.empty()) << tool;
    {
      FullDisk full;
      w.call(w.at_least(4), {1});
      w.call(w.at_least(5), {1});
    }
    w.call(w.at_least(6), {1});
    w.runtime->flush();
    w.runtime->flush();
    EXPECT_EQ(w.runtime->report().losses.code_names_lost, 2u) << tool;
    EXPECT_EQ(lines.with("names of code are missing"), 1) << tool;
    const std::string id = std::to_string(getpid());
    std::filesystem::remove("/tmp/perf-" + id + ".map");
    std::filesystem::remove("/tmp/jit-" + id + ".dump");
  }
}

// ---- Log ------------------------------------------------------------------------------------------

TEST(Noticed, a_profile_that_cannot_be_written_is_said_in_the_log) {
  Lines lines;
  Options o = lines.in(options({{"workers", "0"}, {"profile", "/nonexistent/p.upf"}}));
  { Workshop w(o); }
  ASSERT_EQ(lines.with("the profile of this process is lost: "), 1);
  EXPECT_EQ(lines.all.back().first, LogLevel::kError);
}

}  // namespace
}  // namespace uptier::test::noticed_test
