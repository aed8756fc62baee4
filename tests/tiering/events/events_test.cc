// The event queue alone: numbers, order, losses, delivery, and subscriptions and their ends.
#include "tiering/events/events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "uptier/report.h"

namespace uptier::test::events_test {
namespace {

using tiering::Events;
using tiering::GuestEvents;
using Kind = EventKind;

// Copies each record, then calls a function of the test.
class Keeper : public EventSubscriber {
 public:
  struct Kept {
    Event event;
    std::string text, action;
  };
  explicit Keeper(std::function<void(const Event&)> then = {}) : then_(std::move(then)) {}
  void on_event(const Event& e) noexcept override {
    kept.push_back({e, std::string(e.text), e.decision == nullptr ? "" : e.decision->action});
    if (then_) then_(e);
  }
  std::vector<uint64_t> counts() const {
    std::vector<uint64_t> c;
    for (const Kept& k : kept) c.push_back(k.event.count);
    return c;
  }
  std::vector<Kept> kept;

 private:
  std::function<void(const Event&)> then_;
};

Event event(Kind kind, uint64_t count = 0) {
  Event e;
  e.kind = kind;
  e.count = count;
  return e;
}

TEST(Events, numbers_are_dense_and_in_the_order_of_the_changes_over_threads) {
  constexpr uint64_t kEach = 5000;
  Events events;
  uint64_t next = 1, changes = 0;
  std::atomic<int> inside{0};
  Keeper all([&](const Event& e) {
    EXPECT_EQ(++inside, 1);
    EXPECT_EQ(e.sequence, next);
    EXPECT_EQ(e.count, next++);  // the change that was made under the lock
    --inside;
  });
  ASSERT_TRUE(events.subscribe(all, kAllEvents).ok());
  std::mutex state;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        {
          std::lock_guard lock(state);
          events.emit(event(Kind::kInstalled, ++changes));
        }
        events.deliver();
      }
    });
  }
  for (auto& t : threads) t.join();
  events.deliver_all();
  EXPECT_EQ(next, 4 * kEach + 1);
}

TEST(Events, records_that_no_common_lock_guards_are_delivered_by_their_numbers) {
  constexpr uint64_t kEach = 3000;
  Events events;
  uint64_t next = 1;
  Keeper all([&](const Event& e) { EXPECT_EQ(e.sequence, next++); });
  ASSERT_TRUE(events.subscribe(all, kAllEvents).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        events.emit(event(Kind::kCompiled));
        if (i % 64 == 0) events.deliver();
      }
    });
  }
  for (auto& t : threads) t.join();
  events.deliver_all();
  EXPECT_EQ(next, 4 * kEach + 1);
}

TEST(Events, full_queue_leaves_one_loss_record_in_its_place_and_loses_no_decision) {
  constexpr uint64_t kFits = tiering::EventQueue::kMost;
  Events events;
  Keeper all;
  ASSERT_TRUE(events.subscribe(all, kAllEvents).ok());
  DecisionRecord d;
  d.action = "recompile";
  Event decided = event(Kind::kDecided);
  decided.decision = &d;
  for (uint64_t i = 0; i < kFits + 3; ++i) events.emit(event(Kind::kFlushed, i));
  events.emit(decided);
  events.emit(event(Kind::kFlushed));
  events.emit(decided);
  d.action = "changed since";
  events.deliver();
  events.emit(event(Kind::kFlushed));
  events.deliver();
  ASSERT_EQ(all.kept.size(), kFits + 5);
  auto at = [&](uint64_t i) { return all.kept[kFits + i]; };
  EXPECT_EQ(at(0).event.kind, Kind::kLost);
  EXPECT_EQ(at(0).event.sequence, kFits + 1);
  EXPECT_EQ(at(0).event.count, 3u);
  EXPECT_EQ(at(1).action, "recompile");
  EXPECT_EQ(at(1).event.sequence, kFits + 4);
  EXPECT_EQ(at(2).event.kind, Kind::kLost);
  EXPECT_EQ(at(2).event.count, 1u);
  EXPECT_EQ(at(3).action, "recompile");
  EXPECT_EQ(at(4).event.sequence, kFits + 7);
}

TEST(Events, late_subscriber_is_told_of_its_own_losses_only) {
  constexpr uint64_t kFits = tiering::EventQueue::kMost;
  Events events;
  Keeper early, late;
  ASSERT_TRUE(events.subscribe(early, kAllEvents).ok());
  for (uint64_t i = 0; i < kFits + 3; ++i) events.emit(event(Kind::kFlushed, i));
  ASSERT_TRUE(events.subscribe(late, kAllEvents).ok());
  for (uint64_t i = 0; i < 2; ++i) events.emit(event(Kind::kFlushed, i));
  events.deliver();
  ASSERT_EQ(late.kept.size(), 1u);
  EXPECT_EQ(late.kept[0].event.kind, Kind::kLost);
  EXPECT_EQ(late.kept[0].event.sequence, kFits + 4);
  EXPECT_EQ(late.kept[0].event.count, 2u);
  ASSERT_EQ(early.kept.size(), kFits + 2);
  EXPECT_EQ(early.kept[kFits].event.count, 3u);
}

TEST(Events, guest_records_follow_the_number_that_their_thread_saw) {
  Events events;
  Keeper all;
  ASSERT_TRUE(events.subscribe(all, kAllEvents).ok());
  GuestEvents one, two;
  events.add_thread(one, 1);
  events.add_thread(two, 2);
  one.push(event(Kind::kEntered, 10));  // no subscriber sees this one
  events.emit(event(Kind::kInstalled, 1));
  two.push(event(Kind::kLeft, 20));
  events.emit(event(Kind::kRetired, 2));
  one.push(event(Kind::kLeft, 11));
  one.push(event(Kind::kLeft, 12));
  events.remove_thread(one);  // its records are delivered all the same
  events.deliver();
  EXPECT_EQ(all.counts(), (std::vector<uint64_t>{10, 1, 20, 2, 11, 12}));
  EXPECT_EQ(all.kept[5].event.thread, 1u);
  EXPECT_EQ(all.kept[5].event.sequence, 2u);
  EXPECT_EQ(all.kept[5].event.thread_sequence, 3u);
  one.push(event(Kind::kLeft, 13));  // ignored: the thread is no longer attached
  events.deliver();
  EXPECT_EQ(all.kept.size(), 6u);
  events.remove_thread(two);
}

TEST(Events, rings_are_there_only_while_their_records_are_wanted) {
  Events events;
  GuestEvents t;
  events.add_thread(t, 1);
  t.push(event(Kind::kEntered, 1));
  Keeper installs, guests;
  ASSERT_TRUE(events.subscribe(installs, kinds_of(Kind::kInstalled)).ok());
  t.push(event(Kind::kEntered, 2));
  ASSERT_TRUE(events.subscribe(guests, kinds_of(Kind::kEntered)).ok());
  t.push(event(Kind::kEntered, 3));
  t.push(event(Kind::kLeft, 4));
  events.emit(event(Kind::kInstalled, 5));
  events.deliver();
  ASSERT_TRUE(events.unsubscribe(guests).ok());
  t.push(event(Kind::kEntered, 6));
  events.deliver();
  EXPECT_EQ(guests.counts(), (std::vector<uint64_t>{3}));
  EXPECT_EQ(installs.counts(), (std::vector<uint64_t>{5}));
  events.remove_thread(t);
}

TEST(Events, late_subscriber_receives_what_comes_after_the_number_that_it_was_told) {
  Events events;
  Keeper early, late;
  ASSERT_EQ(*events.subscribe(early, kAllEvents), 0u);
  events.emit(event(Kind::kInstalled, 1));
  events.emit(event(Kind::kInstalled, 2));
  ASSERT_EQ(*events.subscribe(late, kAllEvents), 2u);  // both records are still undelivered
  events.emit(event(Kind::kInstalled, 3));
  events.deliver();
  EXPECT_EQ(early.counts(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(late.counts(), (std::vector<uint64_t>{3}));
  EXPECT_EQ(late.kept[0].event.sequence, 3u);
  EXPECT_EQ(events.subscribe(late, kAllEvents).error().code, ErrorCode::kInvalidArgument);
}

TEST(Events, unsubscribing_in_a_callback_is_effective_when_it_returns) {
  Events events;
  Keeper* self = nullptr;
  Keeper stops([&](const Event& e) {
    if (e.count == 2) { EXPECT_TRUE(events.unsubscribe(*self).ok()); }
  });
  Keeper stays([&](const Event& e) {
    if (e.count != 3) return;
    EXPECT_EQ(events.unsubscribe(*self).error().code, ErrorCode::kNotFound);
  });
  self = &stops;
  ASSERT_TRUE(events.subscribe(stops, kAllEvents).ok());
  ASSERT_TRUE(events.subscribe(stays, kAllEvents).ok());
  for (uint64_t i = 1; i <= 4; ++i) events.emit(event(Kind::kInstalled, i));
  events.deliver();
  EXPECT_EQ(stops.counts(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(stays.kept.size(), 4u);
}

TEST(Events, unsubscribing_another_one_in_a_callback_keeps_it_from_the_record_at_hand) {
  Events events;
  Keeper second;
  Keeper first([&](const Event&) { (void)events.unsubscribe(second); });
  ASSERT_TRUE(events.subscribe(first, kAllEvents).ok());
  ASSERT_TRUE(events.subscribe(second, kAllEvents).ok());
  events.emit(event(Kind::kInstalled));
  events.deliver();
  EXPECT_EQ(first.kept.size(), 1u);
  EXPECT_TRUE(second.kept.empty());
}

TEST(Events, no_call_is_under_way_or_comes_after_another_thread_has_unsubscribed) {
  Events events;
  std::atomic<bool> stop{false};
  std::thread emitter([&] {
    while (!stop) {
      events.emit(event(Kind::kInstalled));
      events.deliver();
    }
  });
  uint64_t calls = 0;
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> gone{false}, seen{false};
    uint64_t unguarded = 0;  // unsynchronized: the thread sanitizer detects a call after the end of
                             // the subscription
    Keeper k([&](const Event&) {
      EXPECT_FALSE(gone);
      ++unguarded;
      seen = true;
      if (i % 3 == 0) std::this_thread::yield();
      EXPECT_FALSE(gone);
    });
    ASSERT_TRUE(events.subscribe(k, kAllEvents).ok());
    while (!seen) std::this_thread::yield();
    ASSERT_TRUE(events.unsubscribe(k).ok());
    gone = true;
    calls += unguarded;
  }
  stop = true;
  emitter.join();
  EXPECT_GE(calls, 100u);
}

TEST(Events, a_subscriber_may_not_change_anything_nor_deliver) {
  Events events;
  bool refused = false;
  Keeper k([&](const Event&) {
    EXPECT_TRUE(events.in_subscriber());
    events.emit(event(Kind::kRetired));
    events.deliver();
    events.deliver_all();  // must not wait for itself
    Status s = events.check_change("set");
    refused = !s.ok() && s.error().message.starts_with("set: refused in a subscriber");
    std::thread([&] {
      EXPECT_TRUE(events.check_change("set").ok());
    }).join();  // allowed on other threads
  });
  ASSERT_TRUE(events.subscribe(k, kinds_of(Kind::kInstalled)).ok());
  events.emit(event(Kind::kInstalled));
  events.deliver();
  EXPECT_TRUE(refused);
  EXPECT_FALSE(events.in_subscriber());
  EXPECT_TRUE(events.check_change("set").ok());
}

TEST(Events, listeners_hear_at_once_and_cost_subscribers_nothing) {
  struct Listener final : tiering::EventListener {
    void hear(const Event& e) noexcept override { heard.push_back(e.sequence); }
    std::vector<uint64_t> heard;
  } l;
  Events events;
  events.listen(l, kinds_of(Kind::kInstalled, Kind::kEvicted));
  events.emit(event(Kind::kInstalled));
  events.emit(event(Kind::kRetired));
  events.emit(event(Kind::kEvicted));
  EXPECT_EQ(l.heard, (std::vector<uint64_t>{1, 3}));
  EXPECT_FALSE(events.wanted(Kind::kInstalled));
  Keeper k;
  ASSERT_EQ(*events.subscribe(k, kinds_of(Kind::kRetired)), 3u);
  events.emit(event(Kind::kInstalled));
  events.emit(event(Kind::kRetired));
  events.deliver();
  EXPECT_EQ(l.heard.back(), 4u);
  ASSERT_EQ(k.kept.size(), 1u);
  EXPECT_EQ(k.kept[0].event.sequence, 5u);
}

TEST(Events, texts_and_times_are_the_records_own) {
  Events events;
  Keeper k;
  ASSERT_TRUE(events.subscribe(k, kAllEvents).ok());
  std::string text = "the host said no, at length and with reasons";
  Event e = event(Kind::kFailed);
  e.text = text;
  events.emit(e);
  text.assign(text.size(), 'x');
  e = event(Kind::kInstalled);
  e.at_ns = 42;
  events.emit(e);
  events.deliver();
  ASSERT_EQ(k.kept.size(), 2u);
  EXPECT_EQ(k.kept[0].text, "the host said no, at length and with reasons");
  EXPECT_NE(k.kept[0].event.at_ns, 0u);
  EXPECT_EQ(k.kept[1].event.at_ns, 42u);
}

TEST(Events, the_drainer_is_woken_once_until_it_has_looked) {
  Events events;
  static int wakes;
  wakes = 0;
  events.set_wake([](void*) noexcept { ++wakes; }, nullptr);
  events.emit(event(Kind::kInstalled));
  EXPECT_EQ(wakes, 0);  // no subscriber, no wake-up
  Keeper k;
  ASSERT_TRUE(events.subscribe(k, kAllEvents).ok());
  GuestEvents t;
  events.add_thread(t, 1);
  events.emit(event(Kind::kInstalled));
  events.emit(event(Kind::kInstalled));
  t.push(event(Kind::kLeft));
  EXPECT_EQ(wakes, 1);
  events.deliver();
  t.push(event(Kind::kLeft));
  EXPECT_EQ(wakes, 2);
  events.deliver();
  events.emit_here(event(Kind::kWorkerPaused));  // delivers at once
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(k.kept.size(), 5u);
  events.remove_thread(t);
}

TEST(Events, every_kind_has_a_name_of_its_own) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kEventKinds; ++i) names.push_back(event_kind_name(static_cast<Kind>(i)));
  for (const std::string& n : names) EXPECT_EQ(std::ranges::count(names, n), 1) << n;
  EXPECT_EQ(names.front(), "lost");
  EXPECT_STREQ(event_kind_name(Kind::kEnded), "ended");
  EXPECT_STREQ(event_kind_name(static_cast<Kind>(kEventKinds)), "?");
  EXPECT_EQ(std::ranges::count(names, "?"), 0);
}

}  // namespace
}  // namespace uptier::test::events_test
