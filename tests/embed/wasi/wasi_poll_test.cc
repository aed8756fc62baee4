// Waiting for clocks and descriptors, with a simulated clock that only moves during waits.
#include <poll.h>

#include <cerrno>

#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_poll_test {
namespace {

class SteppedSystem : public WasiSystem {
 public:
  int clock_resolution(uint32_t, uint64_t*) noexcept override { return ENOSYS; }
  int random(std::span<uint8_t>) noexcept override { return ENOSYS; }
  int clock_time(uint32_t clock, uint64_t* ns) noexcept override {
    if (clock > 3) return EINVAL;
    *ns = clock == wasi::kRealtime ? realtime : monotonic;
    return 0;
  }
  int wait(std::span<pollfd> descriptors, int64_t timeout_ns) noexcept override {
    ++waits;
    last_timeout = timeout_ns;
    if (interruptions > 0) {
      --interruptions;
      for (pollfd& p : descriptors) p.revents = -1;  // the result must be ignored
      return EINTR;
    }
    if (::poll(descriptors.data(), descriptors.size(), 0) > 0) return 0;
    if (timeout_ns < 0) return EDEADLK;  // the wait would never end
    const uint64_t step = std::min<uint64_t>(static_cast<uint64_t>(timeout_ns), longest_wait);
    monotonic += step;
    realtime += step + realtime_jump;
    return 0;
  }
  uint64_t realtime = 1'000'000;
  uint64_t monotonic = 5'000;
  uint64_t realtime_jump = 0;  // the clock is set while the guest waits
  uint64_t longest_wait = UINT64_MAX;
  int64_t last_timeout = 0;
  int waits = 0;
  int interruptions = 0;
};

struct Event {
  uint64_t userdata;
  std::string error;
  uint8_t type;
  uint64_t bytes;
  uint16_t flags;
  auto operator<=>(const Event&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Event& e) {
  return out << "{" << e.userdata << " " << e.error << " type " << int{e.type} << " bytes "
             << e.bytes << " flags " << e.flags << "}";
}

class WasiPoll : public testing::Test {
 protected:
  WasiPoll() {
    EXPECT_EQ(::pipe2(in_, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out_, O_CLOEXEC), 0);
    WasiConfig config = box_config(world_);
    config.system = &system_;
    config.stdin_fd = in_[0];
    config.stdout_fd = out_[1];
    config.stderr_fd = -1;
    guest_ = std::make_unique<Guest>(std::move(config));
  }
  ~WasiPoll() override {
    for (const int fd : {in_[0], in_[1], out_[0], out_[1]}) {
      if (fd >= 0) ::close(fd);
    }
  }

  void add(uint64_t userdata, uint8_t tag) {
    raw_.resize(raw_.size() + 48, 0xee);  // padding is ignored
    wasi::put64(last(), userdata);
    last()[8] = tag;
  }
  uint8_t* last() { return &raw_[raw_.size() - 48]; }
  void add_clock(uint64_t userdata, uint32_t clock, uint64_t timeout, uint16_t flags = 0) {
    add(userdata, wasi::kEventClock);
    wasi::put32(last() + 16, clock);
    wasi::put64(last() + 24, timeout);
    wasi::put64(last() + 32, 0);
    wasi::put16(last() + 40, flags);
  }
  void add_fd(uint64_t userdata, uint8_t tag, uint32_t fd) {
    add(userdata, tag);
    wasi::put32(last() + 16, fd);
  }
  // Polls the subscriptions and clears them.
  std::string poll() {
    const uint64_t count = raw_.size() / 48;
    const uint32_t in = guest_->put(std::string(raw_.begin(), raw_.end()));
    const uint32_t out = guest_->alloc(count * 32);
    const uint32_t number = guest_->alloc(4);
    raw_.clear();
    events_.clear();
    const std::string error = guest_->call("poll_oneoff", {in, out, count, number});
    if (error != "ESUCCESS") return error;
    for (uint32_t i = 0; i < guest_->u32(number); ++i) {
      const uint32_t at = out + i * 32;
      events_.push_back({guest_->u64(at), wasi_errno_name(guest_->u16(at + 8)),
                         guest_->bytes[at + 10], guest_->u64(at + 16), guest_->u16(at + 24)});
    }
    return error;
  }

  WasiWorld world_;
  SteppedSystem system_;
  int in_[2] = {-1, -1};
  int out_[2] = {-1, -1};
  std::unique_ptr<Guest> guest_;
  std::vector<uint8_t> raw_;
  std::vector<Event> events_;
};

Event clock_event(uint64_t userdata, const char* error = "ESUCCESS") {
  return {userdata, error, wasi::kEventClock, 0, 0};
}

TEST_F(WasiPoll, a_relative_wait_lasts_as_long_as_it_says) {
  add_clock(77, wasi::kMonotonic, 1'000'000);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, std::vector{clock_event(77)});
  EXPECT_EQ(system_.monotonic, 1'005'000u);
  EXPECT_EQ(system_.waits, 1);
}

TEST_F(WasiPoll, a_relative_wait_on_the_real_clock_is_immune_to_setting_it) {
  add_clock(1, wasi::kRealtime, 500);
  system_.realtime_jump = 1'000'000;
  system_.longest_wait = 100;
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(system_.monotonic, 5'500u);
}

TEST_F(WasiPoll, an_absolute_wait_ends_at_its_time) {
  add_clock(1, wasi::kRealtime, 1'000'300, wasi::kClockAbstime);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(system_.realtime, 1'000'300u);
  add_clock(2, wasi::kMonotonic, 3, wasi::kClockAbstime);  // long past
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, std::vector{clock_event(2)});
  EXPECT_EQ(system_.realtime, 1'000'300u);
  EXPECT_EQ(system_.last_timeout, 0);
}

TEST_F(WasiPoll, the_earliest_clock_wins_and_equals_come_together) {
  add_clock(1, wasi::kMonotonic, 900);
  add_clock(2, wasi::kMonotonic, 100);
  add_clock(3, wasi::kRealtime, 100);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, (std::vector{clock_event(2), clock_event(3)}));
}

TEST_F(WasiPoll, early_and_interrupted_waits_go_on) {
  system_.longest_wait = 300;
  system_.interruptions = 3;
  add_clock(1, wasi::kMonotonic, 1000);
  add_fd(2, wasi::kEventFdRead, 0);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, std::vector{clock_event(1)});
  EXPECT_EQ(system_.waits, 3 + 4);
  EXPECT_EQ(system_.monotonic, 6'000u);
}

TEST_F(WasiPoll, a_wait_for_ever_does_not_overflow) {
  system_.longest_wait = 1;
  add_clock(1, wasi::kMonotonic, UINT64_MAX);
  add_fd(2, wasi::kEventFdWrite, 1);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].userdata, 2u);
  EXPECT_EQ(system_.last_timeout, INT64_MAX);
}

TEST_F(WasiPoll, descriptors_are_ready_when_the_host_says_so) {
  add_fd(1, wasi::kEventFdRead, 0);
  add_fd(2, wasi::kEventFdWrite, 1);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, (std::vector{Event{2, "ESUCCESS", wasi::kEventFdWrite, 1, 0}}));
  ASSERT_EQ(::write(in_[1], "12345", 5), 5);
  add_fd(1, wasi::kEventFdRead, 0);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, (std::vector{Event{1, "ESUCCESS", wasi::kEventFdRead, 5, 0}}));
  EXPECT_LT(system_.last_timeout, 0);
}

TEST_F(WasiPoll, a_closed_far_end_is_a_hangup) {
  ::close(in_[1]);
  ::close(out_[0]);
  in_[1] = out_[0] = -1;
  add_fd(1, wasi::kEventFdRead, 0);
  add_fd(2, wasi::kEventFdWrite, 1);
  ASSERT_EQ(poll(), "ESUCCESS");
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[0], (Event{1, "ESUCCESS", wasi::kEventFdRead, 0, wasi::kEventHangup}));
  EXPECT_EQ(events_[1].flags, wasi::kEventHangup);
}

TEST_F(WasiPoll, files_are_always_ready_and_tell_how_much_is_left) {
  WasiWorld::write(world_.in_box("file"), "0123456789");
  Guest::OpenOptions o;
  o.base |= wasi::kPollFdReadwrite;
  ASSERT_EQ(guest_->open("file", o), "ESUCCESS");
  ASSERT_EQ(guest_->read(guest_->fd, 4), "ESUCCESS");
  add_fd(9, wasi::kEventFdRead, guest_->fd);
  add_clock(1, wasi::kMonotonic, 1000);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, (std::vector{Event{9, "ESUCCESS", wasi::kEventFdRead, 6, 0}}));
}

TEST_F(WasiPoll, a_bad_subscription_is_an_event_and_not_a_failure) {
  WasiWorld::write(world_.in_box("file"), "");
  ASSERT_EQ(guest_->open("file"), "ESUCCESS");  // without the right to poll
  add_fd(1, wasi::kEventFdRead, 2);
  add_fd(2, wasi::kEventFdRead, guest_->fd);
  add_clock(3, 9, 100);
  add_clock(4, wasi::kProcessCpu, 100);
  add_clock(5, wasi::kMonotonic, 100, 2);
  add_clock(6, wasi::kMonotonic, 100);
  ASSERT_EQ(poll(), "ESUCCESS");
  EXPECT_EQ(events_, (std::vector{Event{1, "EBADF", wasi::kEventFdRead, 0, 0},
                                  Event{2, "ENOTCAPABLE", wasi::kEventFdRead, 0, 0},
                                  clock_event(3, "EINVAL"), clock_event(4, "ENOTSUP"),
                                  clock_event(5, "EINVAL")}));
}

TEST_F(WasiPoll, nothing_to_wait_for_and_unknown_kinds_are_refused) {
  EXPECT_EQ(poll(), "EINVAL");
  add(1, 3);
  EXPECT_EQ(poll(), "EINVAL");
  for (int i = 0; i < 4097; ++i) add_clock(1, wasi::kMonotonic, 0);
  Guest large(WasiConfig{}, 1 << 20);
  const uint32_t in = large.put(std::string(raw_.begin(), raw_.end()));
  const uint32_t out = large.alloc(4097 * 32);
  EXPECT_EQ(large.call("poll_oneoff", {in, out, 4097, 16}), "EINVAL");
}

TEST_F(WasiPoll, events_may_be_written_over_the_subscriptions) {
  add_clock(0x1122334455667788, wasi::kMonotonic, 10);
  add_clock(0x99, wasi::kMonotonic, 10);
  const uint32_t at = guest_->put(std::string(raw_.begin(), raw_.end()));
  const uint32_t number = guest_->alloc(4);
  ASSERT_EQ(guest_->call("poll_oneoff", {at, at, 2, number}), "ESUCCESS");
  EXPECT_EQ(guest_->u32(number), 2u);
  EXPECT_EQ(guest_->u64(at), 0x1122334455667788u);
  EXPECT_EQ(guest_->u64(at + 32), 0x99u);
}

TEST_F(WasiPoll, a_failing_clock_is_reported) {
  add_fd(1, wasi::kEventFdRead, 0);  // would wait forever
  EXPECT_EQ(poll(), "EDEADLK");
}

TEST(WasiHostWait, the_hosts_clock_ends_a_wait_of_a_millisecond) {
  Guest guest(WasiConfig{});
  const uint32_t in = guest.alloc(48);
  std::fill_n(guest.bytes.begin() + in, 48, 0);
  wasi::put32(&guest.bytes[in + 16], wasi::kMonotonic);
  wasi::put64(&guest.bytes[in + 24], 1'000'000);
  const uint32_t out = guest.alloc(32);
  const uint32_t number = guest.alloc(4);
  ASSERT_EQ(guest.call("poll_oneoff", {in, out, 1, number}), "ESUCCESS");
  EXPECT_EQ(guest.u32(number), 1u);
  EXPECT_EQ(guest.u16(out + 8), 0u);
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_poll_test
