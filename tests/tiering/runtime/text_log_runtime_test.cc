// Lines of text from compiled code to the saved profile.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "profile/upf/text_log.h"
#include "tests/support/program_runs.h"
#include "uptier/log_text.h"
#include "uptier/profile_file.h"
#include "uptier/runtime.h"

namespace uptier::test::text_log_runtime_test {
namespace {

// f(x): logs "x" and "x + 1" in a line, and a line without arguments; returns x.
class LoggingHost : public Host {
 public:
  LogFormat pair, none;
  std::string complaint;

  Status build(MethodId, FunctionBuilder& b) noexcept override {
    const Value x = b.param(0);
    const Value both[] = {x, b.binary(Opcode::kAdd, x, b.i64(1))};
    b.log(pair, both);
    b.log(none);
    b.ret(x);
    return {};
  }
};

class TextLogs : public testing::Test {
 protected:
  TextLogs() {
    char name[] = "/tmp/uptier-textlog-XXXXXX";
    dir_ = mkdtemp(name);
    start();
  }
  ~TextLogs() override {
    runtime_.reset();
    std::filesystem::remove_all(dir_);
  }

  void start(uint64_t records = 4096) {
    runtime_.reset();
    Options o;
    o.profile = dir_ + "/p.upf";
    o.interval = 1;
    o.policy = PolicyMode::kNever;
    o.workers = 0;
    o.log_records = records;
    Result<std::unique_ptr<Runtime>> r = Runtime::create(o);
    ASSERT_TRUE(r.ok());
    runtime_ = std::move(*r);
    host_.pair = *runtime_->add_log_format("saw {} and {x}");
    host_.none = *runtime_->add_log_format("done");
    MethodInfo info;
    info.name = "f";
    info.signature = {{Type::kI64}, Type::kI64};
    method_ = *runtime_->add_method(host_, info);
  }
  void call(uint64_t x) { ASSERT_EQ(runtime_->invoke(method_, {{x}}).bits, x); }
  void save() { ASSERT_TRUE(runtime_->save_profile()); }
  std::vector<profile::TextLog> logs() const {
    const std::string bytes = slurp(dir_ + "/p.upf");
    const Result<ProfileFile> f = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(f.ok() && f->warnings.empty());
    std::vector<profile::TextLog> found;
    for (const ForeignInstrument& i : f->foreign.instruments) {
      if (!profile::is_text_log(i)) continue;
      Result<profile::TextLog> log = profile::read_text_log(i);
      EXPECT_TRUE(log.ok()) << log.error().message;
      if (log) found.push_back(std::move(*log));
    }
    return found;
  }
  // Returns the lines of a format in all logs, as text.
  std::vector<std::string> lines(const std::string& format) const {
    std::vector<std::string> found;
    for (const profile::TextLog& log : logs()) {
      if (log.format != format) continue;
      for (const auto& line : log.lines) found.push_back(log_text(format, line.arguments));
    }
    return found;
  }

  std::string dir_;
  LoggingHost host_;
  std::unique_ptr<Runtime> runtime_;
  MethodId method_;
};

TEST_F(TextLogs, a_saved_profile_has_the_lines_with_text_time_and_place) {
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  ASSERT_TRUE(runtime_->attach());  // its ring stays until the save
  for (uint64_t x = 10; x < 13; ++x) call(x);
  save();
  runtime_->detach();
  EXPECT_EQ(lines("saw {} and {x}"),
            (std::vector<std::string>{"saw 10 and 0xb", "saw 11 and 0xc", "saw 12 and 0xd"}));
  EXPECT_EQ(lines("done").size(), 3u);
  const auto after = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = [](auto t) {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
  };
  constexpr uint64_t kSlack = 50'000'000;  // the two clocks are read one after the other
  for (const profile::TextLog& log : logs()) {
    EXPECT_TRUE(log.scope.starts_with("0x") && log.scope.ends_with("@f")) << log.scope;
    EXPECT_NE(log.site, 0u);
    uint64_t last = 0;
    for (const auto& line : log.lines) {
      EXPECT_EQ(line.thread, 1u);
      EXPECT_GE(line.time, std::max(last, ns(before) - kSlack));
      EXPECT_LE(line.time, ns(after) + kSlack);
      last = line.time;
    }
  }
}

TEST_F(TextLogs, lines_are_saved_once_and_those_of_earlier_runs_stay) {
  ASSERT_TRUE(runtime_->attach());
  call(1);
  save();
  call(2);
  save();
  runtime_->detach();
  EXPECT_EQ(lines("saw {} and {x}"), (std::vector<std::string>{"saw 1 and 0x2", "saw 2 and 0x3"}));
  start();
  ASSERT_TRUE(runtime_->attach());
  call(3);
  save();
  runtime_->detach();
  const std::vector<std::string> all = lines("saw {} and {x}");
  EXPECT_EQ(std::set(all.begin(), all.end()),
            (std::set<std::string>{"saw 1 and 0x2", "saw 2 and 0x3", "saw 3 and 0x4"}));
  EXPECT_EQ(all.size(), 3u);
}

TEST_F(TextLogs, lines_that_the_host_has_read_are_the_hosts) {
  ASSERT_TRUE(runtime_->attach());
  call(1);
  const std::vector<LogLine> read = log_lines(runtime_->read_log());
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(log_text(runtime_->log_format(read[0].format), read[0].arguments), "saw 1 and 0x2");
  EXPECT_EQ(runtime_->log_format(read[1].format), "done");
  call(2);
  save();
  EXPECT_EQ(log_lines(runtime_->read_log()).size(), 2u) << "a save leaves them unread";
  runtime_->detach();
  EXPECT_EQ(lines("saw {} and {x}"), (std::vector<std::string>{"saw 2 and 0x3"}));
}

TEST_F(TextLogs, a_full_ring_keeps_whole_lines_only) {
  start(16);
  ASSERT_TRUE(runtime_->attach());
  for (uint64_t x = 0; x < 100; ++x) call(x);
  save();
  runtime_->detach();
  // 16 records are five lines of three records, and the last record of another.
  EXPECT_EQ(lines("saw {} and {x}").size(), 5u);
  EXPECT_EQ(lines("saw {} and {x}").back(), "saw 99 and 0x64");
  EXPECT_EQ(lines("done").size(), 6u);
}

TEST_F(TextLogs, detached_threads_leave_their_lines) {
  for (uint64_t x = 0; x < 3; ++x) call(x);  // each invoke attaches and detaches
  save();
  EXPECT_EQ(lines("saw {} and {x}").size(), 3u);
}

TEST_F(TextLogs, formats_are_checked_and_equal_ones_are_one) {
  EXPECT_EQ(*runtime_->add_log_format("done"), host_.none);
  EXPECT_EQ(host_.pair.arguments(), 2u);
  EXPECT_EQ(runtime_->log_format({}), "");
  EXPECT_EQ(runtime_->log_format({host_.none.tag | 1 << 4}), "") << "another number of arguments";
  const Result<LogFormat> bad = runtime_->add_log_format("{name}");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(TextLogs, a_body_that_passes_another_number_of_arguments_is_refused) {
  std::swap(host_.pair, host_.none);
  EXPECT_EQ(runtime_->invoke(method_, {{1}}).trap.code, TrapCode::kNoCode);
  EXPECT_NE(runtime_->error_of(method_).find("as many placeholders"), std::string::npos)
      << runtime_->error_of(method_);
}

}  // namespace
}  // namespace uptier::test::text_log_runtime_test
