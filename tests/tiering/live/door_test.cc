// The door: whom it answers, what it refuses, and that nobody can hold it up.
#include "tiering/live/door.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <vector>

#include "tests/support/private_dir.h"
#include "tests/support/raw_client.h"
#include "tiering/base/clock.h"

namespace uptier::test::door_test {
namespace {

using tiering::Door;
using Clock = std::chrono::steady_clock;

// Answers with a text, and counts how often it was asked.
struct Teller {
  std::string text = "all is well\n";
  uint64_t takes_ns = 0;  // processor time
  mutable std::atomic<int> asked{0};
  static std::string answer(const void* of) {
    const auto* t = static_cast<const Teller*>(of);
    ++t->asked;
    for (const uint64_t end = tiering::thread_cpu_ns() + t->takes_ns;
         tiering::thread_cpu_ns() < end;) {}
    return t->text;
  }
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class DoorTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Door>> try_open(const std::string& where, Door::Limits limits = {}) {
    return Door::open(where, Teller::answer, &teller_, limits);
  }
  void open(Door::Limits limits = {}) {
    Result<std::unique_ptr<Door>> d = try_open(path_, limits);
    ASSERT_TRUE(d.ok()) << d.error().message;
    door_ = std::move(*d);
  }
  // Expects that opening fails with these words.
  void refuse(const std::string& where, const std::string& words) {
    Result<std::unique_ptr<Door>> d = try_open(where);
    ASSERT_FALSE(d.ok()) << where;
    EXPECT_NE(d.error().message.find(words), std::string::npos) << d.error().message;
    EXPECT_NE(d.error().message.find(dir_.path()), std::string::npos) << d.error().message;
  }
  mode_t mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info.st_mode;
  }
  // One request, one answer.
  std::string ask() {
    RawClient c(path_);
    if (c.error() != 0) return strerror(c.error());
    c.say("time\n");
    return heard(c);
  }
  // An answer, or what came of it.
  std::string heard(RawClient& c) { return c.hear(5000, teller_.text.size()); }

  PrivateDir dir_;
  const std::string path_ = dir_.path("it.sock");
  Teller teller_;
  std::unique_ptr<Door> door_;
};

TEST_F(DoorTest, answers_again_and_again_and_its_socket_goes_with_it) {
  open();
  EXPECT_EQ(mode_of(path_), S_IFSOCK | 0600u);
  RawClient c(path_);
  for (int i = 0; i < 3; ++i) {
    c.say("time\n");
    EXPECT_EQ(heard(c), teller_.text);
    EXPECT_FALSE(c.ended());
  }
  c.say("ti");
  EXPECT_EQ(c.hear(50), "");
  c.say("me\ntime\nti");
  EXPECT_EQ(c.hear(5000, 2 * teller_.text.size()), teller_.text + teller_.text);
  door_.reset();
  EXPECT_EQ(c.hear(), "");
  EXPECT_TRUE(c.ended());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(DoorTest, anything_but_the_request_is_refused_and_does_no_harm) {
  open();
  const std::string long_line(100'000, 't');
  for (const std::string& words :
       {std::string("set sample_hz=0\n"), std::string("\0\xff\x80 time\n", 9),
        std::string("time \n"), std::string("TIME\n"), std::string("timetime\n"), std::string("\n"),
        long_line}) {
    RawClient c(path_);
    ASSERT_EQ(c.error(), 0);
    (void)::send(c.fd(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    EXPECT_EQ(c.hear(), "error the only request is \"time\"\n") << words.substr(0, 40);
    EXPECT_TRUE(c.ended());
  }
  EXPECT_EQ(teller_.asked, 0);
  EXPECT_EQ(ask(), teller_.text);
}

TEST_F(DoorTest, more_than_four_clients_are_sent_away_until_one_leaves) {
  open();
  std::vector<std::unique_ptr<RawClient>> all;
  for (size_t i = 0; i < Door::kMostClients; ++i) {
    all.push_back(std::make_unique<RawClient>(path_));
    all.back()->say("time\n");
    EXPECT_EQ(heard(*all.back()), teller_.text);
  }
  RawClient more(path_);
  EXPECT_EQ(more.hear(), "error 4 others are watching this process, no more may: end one\n");
  EXPECT_TRUE(more.ended());
  all.pop_back();
  all.front()->say("time\n");  // the door has seen the other one leave before it answers this
  EXPECT_EQ(heard(*all.front()), teller_.text);
  EXPECT_EQ(ask(), teller_.text);
}

TEST_F(DoorTest, a_client_that_does_not_read_holds_up_nobody) {
  teller_.text.assign(32 << 20, 'x');
  open();
  RawClient stalled(path_);
  stalled.say("time\n");
  EXPECT_EQ(ask().size(), teller_.text.size());  // another one gets its answer
  const Clock::time_point begin = Clock::now();
  door_.reset();
  EXPECT_LT(seconds_since(begin), 1.0);
  EXPECT_LT(stalled.hear().size(), teller_.text.size());
  EXPECT_TRUE(stalled.ended());
}

TEST_F(DoorTest, clients_that_stall_or_are_silent_are_dropped_in_time) {
  teller_.text.assign(32 << 20, 'x');
  open({.patience_ns = 200'000'000, .idle_ns = 400'000'000});
  RawClient stalled(path_), silent(path_);
  stalled.say("time\n");
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(silent.hear(), "");
  EXPECT_TRUE(silent.ended());
  EXPECT_GT(seconds_since(begin), 0.39);
  EXPECT_LT(seconds_since(begin), 4.0);
  EXPECT_LT(stalled.hear().size(), teller_.text.size());
  EXPECT_TRUE(stalled.ended());
}

TEST_F(DoorTest, requests_in_quick_succession_get_one_answer) {
  open();
  RawClient c(path_);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 1000; ++i) {
    c.say("time\n");
    char text[64];
    ASSERT_GT(::recv(c.fd(), text, sizeof text, 0), 0);
  }
  EXPECT_LE(teller_.asked, 1 + seconds_since(begin) / 0.05);
  EXPECT_GE(teller_.asked, 1);
}

TEST_F(DoorTest, answers_that_take_long_are_made_rarely) {
  teller_.takes_ns = 20'000'000;
  open();
  RawClient c(path_);
  const Clock::time_point begin = Clock::now();
  while (seconds_since(begin) < 1.0) {
    c.say("time\n");
    ASSERT_EQ(heard(c), teller_.text);
  }
  EXPECT_LE(teller_.asked, 1 + seconds_since(begin) / 0.42);
}

TEST_F(DoorTest, a_directory_that_others_may_use_is_refused) {
  const std::string in = dir_.path("in");
  for (const mode_t mode : {0755u, 0710u, 0701u, 0770u, 0777u}) {
    std::filesystem::remove_all(in);
    ASSERT_EQ(mkdir(in.c_str(), 0700), 0);
    ASSERT_EQ(chmod(in.c_str(), mode), 0);
    refuse(in + "/it.sock", "chmod 700 closes it");
    EXPECT_FALSE(std::filesystem::exists(in + "/it.sock"));
  }
  ASSERT_EQ(chmod(in.c_str(), 0700), 0);
  EXPECT_TRUE(try_open(in + "/it.sock").ok());
}

TEST_F(DoorTest, a_link_or_a_file_or_nothing_is_no_directory) {
  const std::string link = dir_.path("link"), file = dir_.path("file");
  ASSERT_EQ(symlink(dir_.path().c_str(), link.c_str()), 0);
  refuse(link + "/it.sock", "neither a link nor another file");
  std::ofstream(file) << "x";
  refuse(file + "/it.sock", "neither a link nor another file");
  refuse(dir_.path("none") + "/it.sock", "mkdir -m 700 makes it");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(DoorTest, a_directory_of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const std::string in = dir_.path("in");
  ASSERT_EQ(mkdir(in.c_str(), 0700), 0);
  ASSERT_EQ(chown(in.c_str(), 65534, 65534), 0);
  refuse(in + "/it.sock", "belongs to user 65534");
}

TEST_F(DoorTest, what_is_no_abandoned_socket_is_not_replaced) {
  std::ofstream(path_) << "mine";
  refuse(path_, "a file that is no socket has this name");
  EXPECT_EQ(std::filesystem::file_size(path_), 4u);
  std::filesystem::remove(path_);
  const std::string to = dir_.path("to.sock");
  ASSERT_EQ(symlink(to.c_str(), path_.c_str()), 0);
  refuse(path_, "a file that is no socket has this name");
  EXPECT_FALSE(std::filesystem::exists(to));
  std::filesystem::remove(path_);
  open();
  refuse(path_, "somebody listens on this socket already");
  EXPECT_EQ(ask(), teller_.text);
}

TEST_F(DoorTest, an_abandoned_socket_is_replaced) {
  const pid_t child = fork();
  if (child == 0) {
    open();
    _exit(door_ != nullptr ? 0 : 1);  // the socket stays, as after a kill
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(RawClient(path_).error(), ECONNREFUSED);
  open();
  EXPECT_EQ(ask(), teller_.text);
}

TEST_F(DoorTest, a_socket_that_took_the_name_is_not_removed) {
  open();
  const std::unique_ptr<Door> first = std::move(door_);
  std::filesystem::remove(path_);
  open();
  const_cast<std::unique_ptr<Door>&>(first).reset();
  EXPECT_EQ(ask(), teller_.text);
}

// The modes would keep another user out; here they are wrong.
TEST_F(DoorTest, another_user_is_sent_away_even_if_the_modes_let_him_in) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  open();
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    RawClient c(path_);
    (void)::send(c.fd(), "time\n", 5, MSG_NOSIGNAL);
    const std::string heard = c.hear();
    _exit(heard == "error this process is of user 0, and answers only that user\n" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(teller_.asked, 0);
}

// A child of a fork has the sockets as well, but they end for clients with their door.
TEST_F(DoorTest, a_child_of_a_fork_keeps_no_client) {
  open();
  RawClient c(path_);
  c.say("time\n");
  EXPECT_EQ(heard(c), teller_.text);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  c.say("time\n");
  EXPECT_EQ(heard(c), teller_.text);  // the parent goes on answering
  door_.reset();
  EXPECT_EQ(c.hear(), "");
  EXPECT_TRUE(c.ended());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(DoorTest, a_path_may_be_long) {
  std::string deep = dir_.path();
  for (int i = 0; i < 4; ++i) {
    deep += "/" + std::string(60, 'd');
    ASSERT_EQ(mkdir(deep.c_str(), 0700), 0);
  }
  Result<std::unique_ptr<Door>> d = try_open(deep + "/it.sock");
  ASSERT_TRUE(d.ok()) << d.error().message;
  EXPECT_TRUE(std::filesystem::exists(deep + "/it.sock"));
  refuse(dir_.path(std::string(100, 'n')), "too long");
}

TEST_F(DoorTest, without_descriptors_it_waits_and_goes_on) {
  open();
  std::vector<int> taken;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  RawClient c(path_);  // let in before there are none
  c.say("time\n");
  EXPECT_EQ(heard(c), teller_.text);
  const int next = dup(0);
  close(next);
  RawClient waits("/nowhere");  // its descriptor is for later
  const rlimit low{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, path_.c_str(), sizeof to.sun_path - 1);
  ASSERT_EQ(connect(waits.fd(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  waits.say("time\n");
  const clock_t before_it = clock();
  EXPECT_EQ(waits.hear(300), "");
  EXPECT_LT(clock() - before_it, CLOCKS_PER_SEC / 10);  // it does not ask the system all the time
  EXPECT_FALSE(waits.ended());
  c.say("time\n");
  EXPECT_EQ(heard(c), teller_.text);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(heard(waits), teller_.text);
}

}  // namespace
}  // namespace uptier::test::door_test
