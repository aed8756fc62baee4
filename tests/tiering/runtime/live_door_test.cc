// The socket of a runtime: what a view of it reads, and when it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "tests/support/private_dir.h"
#include "tests/support/raw_client.h"
#include "tests/support/workshop.h"
#include "uptier/live_time.h"

namespace uptier::test::live_door_test {
namespace {

uint64_t cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void rounds(FunctionBuilder& b, int64_t n) {
  loop_down(b, b.i64(n), b.param(0), [&](Value sum, Value x) {
    return b.binary(Opcode::kAdd, b.binary(Opcode::kMul, sum, b.i64(0x5851f42d)), x);
  });
}

std::vector<std::string>* g_lines = nullptr;
void keep_line(void*, LogLevel, std::string_view line) { g_lines->emplace_back(line); }

class LiveDoorTest : public testing::Test {
 protected:
  LiveDoorTest() { g_lines = &lines_; }
  Options listening(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
    Options o = options(more);
    o.listen = path_;
    o.sample_hz = 1000;
    o.sample_engine = SampleEngine::kCpuTimer;
    o.log = keep_line;
    return o;
  }
  static void burn(Workshop& w, MethodId m, uint64_t ns) {
    ThreadScope scope(*w.runtime);
    for (const uint64_t end = cpu_now() + ns; cpu_now() < end;) {
      ASSERT_TRUE(w.call(m, {1}).ok());
    }
  }
  std::unique_ptr<LiveView> view() {
    Result<std::unique_ptr<LiveView>> v = LiveView::of_socket(path_);
    EXPECT_TRUE(v.ok()) << v.error().message;
    return v ? std::move(*v) : nullptr;
  }
  // A new answer: the door gives one of the last 50 ms again.
  static LiveTime read(LiveView& v) {
    std::optional<uint64_t> first;
    for (int i = 0; i < 1000; ++i) {
      Result<LiveTime> t = v.read();
      EXPECT_TRUE(t.ok()) << t.error().message;
      if (!t) break;
      if (first.value_or(t->age_ns) != t->age_ns) return std::move(*t);
      first = t->age_ns;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "no new answer";
    return {};
  }

  PrivateDir dir_;
  const std::string path_ = dir_.path("it.sock");
  std::vector<std::string> lines_;
};

const LiveRow* row_of(const LiveTime& t, const std::string& name) {
  const auto at = std::ranges::find(t.rows, name, &LiveRow::name);
  return at == t.rows.end() ? nullptr : &*at;
}

TEST_F(LiveDoorTest, a_view_reads_what_the_report_says) {
  Workshop w(listening({{"tier", "baseline"}}));
  const MethodId hot = w.add("hot", kOne, [](FunctionBuilder& b) { rounds(b, 20'000); });
  const MethodId warm = w.add("warm", kOne, [](FunctionBuilder& b) { rounds(b, 20'000); });
  const auto v = view();
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(read(*v).samples, 0u);
  burn(w, warm, 100'000'000);
  const LiveTime before = read(*v);
  burn(w, hot, 300'000'000);
  const LiveTime now = read(*v);
  const TimeReport report = w.runtime->report().time;
  EXPECT_EQ(now.process, static_cast<uint64_t>(getpid()));
  EXPECT_EQ(now.hz, 1000u);
  EXPECT_EQ(now.samples, report.samples);
  EXPECT_EQ(now.sampled_ns, static_cast<uint64_t>(report.sampled_ns));
  EXPECT_EQ(now.squares, static_cast<uint64_t>(report.squares / 1e6));
  EXPECT_GT(now.squares, 0u);
  EXPECT_GT(now.age_ns, before.age_ns);
  EXPECT_GT(now.code_bytes, 0u);
  ASSERT_EQ(now.rows.size(), report.rows.size());
  for (size_t i = 0; i < now.rows.size(); ++i) {
    EXPECT_EQ(now.rows[i].name, report.rows[i].name);
    EXPECT_EQ(now.rows[i].method, report.rows[i].method);
    EXPECT_EQ(now.rows[i].key, report.rows[i].key);
    EXPECT_EQ(now.rows[i].tier, report.rows[i].tier);
    EXPECT_EQ(now.rows[i].samples, report.rows[i].samples);
  }
  // What ran in between is the difference.
  ASSERT_NE(row_of(before, "warm"), nullptr);
  EXPECT_EQ(row_of(before, "hot"), nullptr);
  EXPECT_EQ(row_of(now, "warm")->ns, row_of(before, "warm")->ns);
  EXPECT_GT(row_of(now, "hot")->ns, 150'000'000u);
  EXPECT_EQ(row_of(now, "hot")->serves, Tier::kBaseline);
  EXPECT_EQ(row_of(now, "hot")->state, CompileState::kReady);
  EXPECT_EQ(lines_.size(), 0u);
}

TEST_F(LiveDoorTest, the_compilers_state_is_told) {
  Workshop w(listening({{"policy", "always"}, {"flush_first", "1"}, {"max_body", "40"}}));
  const MethodId small = w.add("small", kOne, [](FunctionBuilder& b) { rounds(b, 20'000); });
  const MethodId large = w.add("large", kOne, [](FunctionBuilder& b) {
    Value x = b.param(0);
    for (int i = 0; i < 60; ++i) x = b.binary(Opcode::kAdd, x, b.param(0));
    loop_down(b, b.i64(20'000), x, [&](Value s, Value n) { return b.binary(Opcode::kXor, s, n); });
  });
  const auto v = view();
  ASSERT_NE(v, nullptr);
  burn(w, small, 150'000'000);
  burn(w, large, 150'000'000);
  w.runtime->flush();
  LiveTime t = read(*v);
  ASSERT_NE(row_of(t, "small"), nullptr);
  ASSERT_NE(row_of(t, "large"), nullptr);
  EXPECT_EQ(row_of(t, "small")->serves, Tier::kOptimized);
  EXPECT_EQ(row_of(t, "small")->state, CompileState::kReady);
  EXPECT_EQ(row_of(t, "large")->serves, Tier::kBaseline);
  EXPECT_EQ(row_of(t, "large")->state, CompileState::kFailed);
  w.remove(small);
  t = read(*v);
  ASSERT_NE(row_of(t, "small"), nullptr);
  EXPECT_EQ(row_of(t, "small")->state, CompileState::kRemoved);
}

// The worker is held up in the description of a method that is to be optimized.
TEST_F(LiveDoorTest, a_compilation_under_way_is_told) {
  std::atomic<bool> holds{false}, held{false};
  Workshop w(listening({{"policy", "always"}, {"flush_first", "1"}}));
  const MethodId slow = w.add("slow", kOne, [&](FunctionBuilder& b) {
    rounds(b, 3000);
    held = held || holds;
    while (holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto v = view();
  ASSERT_NE(v, nullptr);
  ThreadScope scope(*w.runtime);
  ASSERT_TRUE(w.call(slow, {1}).ok());  // described once, before it is asked to hold
  holds = true;
  for (int i = 0; i < 1000 && !held; ++i) burn(w, slow, 5'000'000);
  ASSERT_TRUE(held);
  burn(w, slow, 50'000'000);
  LiveTime t = read(*v);
  ASSERT_NE(row_of(t, "slow"), nullptr);
  EXPECT_EQ(row_of(t, "slow")->state, CompileState::kWaiting);
  holds = false;
  for (int i = 0; i < 100 && row_of(t, "slow")->state == CompileState::kWaiting; ++i) {
    burn(w, slow, 5'000'000);
    t = read(*v);
  }
  EXPECT_EQ(row_of(t, "slow")->state, CompileState::kReady);
  EXPECT_EQ(row_of(t, "slow")->serves, Tier::kOptimized);
}

TEST_F(LiveDoorTest, sampling_may_begin_later) {
  Options o = listening();
  o.sample_hz = 0;
  Workshop w(o);
  const MethodId hot = w.add("hot", kOne, [](FunctionBuilder& b) { rounds(b, 20'000); });
  const auto v = view();
  ASSERT_NE(v, nullptr);
  burn(w, hot, 50'000'000);
  const LiveTime before = read(*v);
  EXPECT_EQ(before.hz, 0u);
  EXPECT_TRUE(before.rows.empty());
  ASSERT_TRUE(w.runtime->set("sample_hz", "1000").ok());
  burn(w, hot, 100'000'000);
  const LiveTime now = read(*v);
  EXPECT_EQ(now.hz, 1000u);
  EXPECT_GT(now.samples, 0u);
}

// As docs/embedding.md shows it.
std::string samples_of(uint64_t process) {
  std::string text;
  Result<std::unique_ptr<LiveView>> view = LiveView::of_process(process);
  if (!view) return view.error().message;
  Result<LiveTime> now = (*view)->read();
  if (!now) return now.error().message;  // it has ended
  for (const LiveRow& r : now->rows) text += r.name + " " + std::to_string(r.samples) + "\n";
  return text;
}

TEST_F(LiveDoorTest, a_process_is_found_by_its_id) {
  Options o = listening();
  o.listen = "on";
  Workshop w(o);
  const MethodId hot = w.add("hot", kOne, [](FunctionBuilder& b) { rounds(b, 20'000); });
  burn(w, hot, 100'000'000);
  const std::string text = samples_of(static_cast<uint64_t>(getpid()));
  EXPECT_NE(text.find("hot "), std::string::npos) << text;
  EXPECT_NE(samples_of(1).find("process 1 "), std::string::npos);
}

TEST_F(LiveDoorTest, ends_with_the_runtime) {
  std::unique_ptr<LiveView> v;
  {
    Workshop w(listening());
    v = view();
    ASSERT_NE(v, nullptr);
    read(*v);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  const Result<LiveTime> t = v->read();
  ASSERT_FALSE(t.ok());
  EXPECT_EQ(t.error().code, ErrorCode::kNotFound);
  EXPECT_NE(t.error().message.find("has ended"), std::string::npos) << t.error().message;
}

TEST_F(LiveDoorTest, no_socket_is_made_unless_it_is_asked_for) {
  Options o = listening();
  o.listen.clear();
  Workshop w(o);
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
  const auto v = LiveView::of_process(static_cast<uint64_t>(getpid()));
  ASSERT_FALSE(v.ok());
  EXPECT_NE(v.error().message.find("uptier run --listen"), std::string::npos) << v.error().message;
}

TEST_F(LiveDoorTest, a_runtime_goes_on_without_its_socket) {
  Workshop first(listening());
  Workshop second(listening());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_TRUE(lines_[0].starts_with("listen: " + path_ + ": somebody listens")) << lines_[0];
  const MethodId m = second.adder(1);
  ThreadScope scope(*second.runtime);
  EXPECT_EQ(second.call(m, {1}).bits, 2u);
}

TEST_F(LiveDoorTest, the_options_word_is_checked) {
  Options o;
  for (const char* good : {"on", "off", "", "/run/own/it.sock", "./it.sock"}) {
    EXPECT_TRUE(o.set("listen", good).ok()) << good;
  }
  for (const char* bad : {"yes", "it.sock", "/run/own/"}) {
    const Status s = o.set("listen", bad);
    ASSERT_FALSE(s.ok()) << bad;
    EXPECT_NE(s.error().message.find("on, off or the path of a socket"), std::string::npos);
  }
  ASSERT_TRUE(o.set("listen", "on").ok());
  EXPECT_EQ(o.changes(), "listen=on");
  ASSERT_TRUE(o.set("listen", "off").ok());
  EXPECT_EQ(o.listen, "");
  Workshop w(o);
  EXPECT_EQ(w.runtime->set("listen", path_).error().code, ErrorCode::kUnsupported);
}

// The child's copy of the runtime has no thread that answers, and must not close what is its
// parent's.
TEST_F(LiveDoorTest, a_child_of_a_fork_leaves_the_socket_to_its_parent) {
  auto w = std::make_unique<Workshop>(listening());
  const auto v = view();
  ASSERT_NE(v, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    w.reset();  // does nothing
    _exit(std::filesystem::exists(path_) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(*v).process, static_cast<uint64_t>(getpid()));
  w.reset();
  EXPECT_FALSE(v->read().ok());
}

// A client that asks and never reads, while a runtime runs code and ends.
TEST_F(LiveDoorTest, a_stalled_client_delays_neither_code_nor_the_end) {
  auto w = std::make_unique<Workshop>(listening({{"tier", "baseline"}}));
  const MethodId m = w->adder(1);
  for (int i = 0; i < 2000; ++i) w->adder(static_cast<uint64_t>(i));
  RawClient stalled(path_);
  ASSERT_EQ(stalled.error(), 0);
  int small = 1;
  setsockopt(stalled.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  for (int i = 0; i < 2000; ++i) {
    if (::send(stalled.fd(), "time\n", 5, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
  }
  burn(*w, m, 50'000'000);
  const auto begin = std::chrono::steady_clock::now();
  w.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

}  // namespace
}  // namespace uptier::test::live_door_test
