// When the hosts of retired methods are told that they will not be called any more.
#include "tiering/serve/retired_hosts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace uptier::tiering::gone_hosts_test {
namespace {

class GoneHostsTest : public testing::Test {
 protected:
  class Told final : public Host {
   public:
    void gone(MethodId m) noexcept override {
      told.push_back(m);
      if (then) then(m);
    }
    void release(MethodId m, const HostCode&) noexcept override { released.push_back(m); }

    std::vector<MethodId> told, released;
    std::function<void(MethodId)> then;
  };

  void SetUp() override {
    ASSERT_TRUE(methods_.reserve(4));
    for (uint32_t i = 0; i < 3; ++i) {
      methods_.put(std::make_unique<Method>(MethodId(i), i + 1, host_, MethodInfo()));
    }
  }
  Method& method(uint32_t i) { return methods_.at(i); }
  // A version in service, with the bodies of others inlined.
  Version& add(uint32_t of, std::vector<uint32_t> bodies = {}, bool enterable = false) {
    method(of).versions.push_back(std::make_unique<Version>());
    Version& v = *method(of).versions.back();
    v.method = MethodId(of);
    v.bodies = std::move(bodies);
    v.enterable = enterable;
    if (enterable) method(of).enterable = &v;
    hosts_.hold_locked(v);
    return v;
  }
  // Retires a method as a runtime does: threads may look at it until they_have_left() is called.
  void retire(uint32_t i) {
    Method& m = method(i);
    m.removed = m.retired = true;
    m.host_use = HostUse::kUntilGone;
    places_.note_removed(m);
    methods_.take_out(m);
    ++m.holds;
  }
  void they_have_left(uint32_t i) { hosts_.let_go_locked(method(i)); }
  // Frees retired versions and tells hosts. No thread is attached, so nothing waits.
  void free_and_tell() {
    {
      std::lock_guard lock(mutex_);
      do {
        for (const Version* v : reclaimer_.reclaim({}).versions) hosts_.let_go_locked(*v);
      } while (hosts_.leave_locked());
    }
    hosts_.tell();
  }
  const std::vector<MethodId>& told() const { return host_.told; }

  Told host_;
  WaitedMutex mutex_;
  MethodTable methods_;
  Places places_{methods_};
  Events events_;
  Reclaimer reclaimer_{events_};
  GoneHosts hosts_{mutex_, methods_, places_, reclaimer_};
};

const std::vector<MethodId> kNobody, kFirst{MethodId(0)};

TEST_F(GoneHostsTest, a_host_is_told_once_when_neither_code_nor_threads_have_the_method) {
  Version& v = add(0);
  retire(0);
  free_and_tell();
  reclaimer_.retire(v);
  free_and_tell();
  EXPECT_EQ(told(), kNobody) << "threads may look at it";
  they_have_left(0);
  EXPECT_TRUE(hosts_.wait_to_leave());
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
  EXPECT_EQ(method(0).host_use, HostUse::kOver);
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
  EXPECT_FALSE(hosts_.wait_to_leave());
}

TEST_F(GoneHostsTest, code_of_the_method_holds_it) {
  Version& v = add(0);
  retire(0);
  they_have_left(0);
  free_and_tell();
  EXPECT_EQ(told(), kNobody);
  reclaimer_.retire(v);
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
}

TEST_F(GoneHostsTest, code_that_has_the_body_in_it_holds_the_method) {
  Version& caller = add(1, {0});
  retire(0);
  they_have_left(0);
  free_and_tell();
  EXPECT_EQ(told(), kNobody);
  reclaimer_.retire(caller);
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
  EXPECT_EQ(method(1).holds, 0u);
}

TEST_F(GoneHostsTest, code_for_frames_that_leave_goes_last_and_is_waited_for) {
  Version& v = add(0);
  Version& enterable = add(0, {}, true);
  retire(0);
  they_have_left(0);
  free_and_tell();
  EXPECT_FALSE(enterable.retired) << "frames of the other may go into it";
  reclaimer_.retire(v);
  for (const Version* freed : reclaimer_.reclaim({}).versions) hosts_.let_go_locked(*freed);
  EXPECT_TRUE(hosts_.leave_locked());
  EXPECT_EQ(method(0).enterable.load(), nullptr);
  EXPECT_TRUE(enterable.retired);
  EXPECT_FALSE(hosts_.leave_locked());
  hosts_.tell();
  EXPECT_EQ(told(), kNobody) << "its guards go to the host";
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
}

TEST_F(GoneHostsTest, a_compilation_that_began_before_is_waited_for) {
  Places::Look compiling;
  places_.begin_look(compiling);
  retire(0);
  they_have_left(0);
  free_and_tell();
  EXPECT_EQ(told(), kNobody);
  EXPECT_TRUE(hosts_.wait_to_leave());
  add(1, {0});
  places_.end_look(compiling);
  free_and_tell();
  EXPECT_EQ(told(), kNobody) << "it has put the body into other code";
  EXPECT_FALSE(hosts_.wait_to_leave());
  reclaimer_.retire(*method(1).versions.front());
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
}

TEST_F(GoneHostsTest, nobody_is_told_of_methods_that_are_in_service_or_were_removed) {
  Version &serves = add(0), &removed = add(1);
  retire(1);
  method(1).retired = false;
  method(1).host_use = HostUse::kOver;
  they_have_left(1);
  reclaimer_.retire(serves);
  reclaimer_.retire(removed);
  for (const Version* freed : reclaimer_.reclaim({}).versions) hosts_.let_go_locked(*freed);
  EXPECT_FALSE(hosts_.wait_to_leave());
  free_and_tell();
  EXPECT_EQ(told(), kNobody);
  EXPECT_EQ(method(0).holds, 0u);
}

TEST_F(GoneHostsTest, at_the_end_all_that_wait_give_code_back_and_are_told) {
  for (uint32_t i : {0, 1}) {
    Version& v = add(i);
    v.host = &host_;
  }
  retire(1);
  hosts_.leave_all();
  const std::vector<MethodId> second{MethodId(1)};
  EXPECT_EQ(told(), second);
  EXPECT_EQ(host_.released, second);
}

TEST_F(GoneHostsTest, a_host_may_be_asked_until_it_is_to_be_told) {
  EXPECT_TRUE(hosts_.may_ask(method(0)));
  retire(0);
  EXPECT_TRUE(hosts_.may_ask(method(0))) << "for frames that leave";
  they_have_left(0);
  EXPECT_FALSE(hosts_.leave_locked());
  EXPECT_FALSE(hosts_.may_ask(method(0)));
  hosts_.tell();
  EXPECT_FALSE(hosts_.may_ask(method(0)));
}

TEST_F(GoneHostsTest, who_wants_to_let_a_host_die_waits_for_another_thread_that_tells_it) {
  retire(0);
  they_have_left(0);
  ASSERT_FALSE(hosts_.leave_locked());
  std::atomic<bool> telling{false}, done{false};
  host_.then = [&](MethodId) {
    telling = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  };
  std::thread other([&] { hosts_.tell(); });
  while (!telling) std::this_thread::yield();
  hosts_.await_tellers(kFirst);
  EXPECT_TRUE(done);
  other.join();
}

TEST_F(GoneHostsTest, a_host_that_is_being_told_does_not_wait_for_itself) {
  retire(0);
  they_have_left(0);
  host_.then = [&](MethodId) { hosts_.await_tellers(kFirst); };
  free_and_tell();
  EXPECT_EQ(told(), kFirst);
}

}  // namespace
}  // namespace uptier::tiering::gone_hosts_test
