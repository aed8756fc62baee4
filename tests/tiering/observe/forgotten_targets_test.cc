// Tables of call targets name methods by stubs, which may be reused: no slot waits for a table, and
// no count of one method is credited to another.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <semaphore>
#include <thread>

#include "sampler/site_tables.h"
#include "tests/support/workshop.h"

namespace uptier::test::forgotten_targets_test {
namespace {

// The profile of the calls made by the dispatcher, the first method of the workshop.
struct Seen {
  uint64_t other = 0;
  uint64_t other_estimate = 0;
  std::map<uint64_t, TableEntry> targets;  // by function index

  uint64_t all() const {
    uint64_t sum = other;
    for (const auto& [f, e] : targets) sum += e.count;
    return sum;
  }
};

Seen seen_by(Workshop& w) {
  w.runtime->flush();
  Seen s;
  Profile p = w.runtime->profile();
  for (const auto& [key, m] : p.methods) {
    if (key.function_index != 0) continue;
    for (const Slot& slot : m.schema.slots) {
      if (slot.kind != SlotKind::kCallTarget) continue;
      s.other += m.counts[slot.word + slot_word::kTargetOther];
      s.other_estimate += m.estimates[slot.word + slot_word::kTargetOther];
    }
    for (const auto& [site, table] : m.tables) {
      for (const auto& [target, e] : table) s.targets[target.value] = e;
    }
  }
  return s;
}

void dispatch(Workshop& w, MethodId dispatcher, MethodId m, uint64_t n, uint64_t times) {
  for (uint64_t x = 0; x < times; ++x) {
    ASSERT_EQ(w.call(dispatcher, {w.address(m), x}).bits, x + n);
  }
}

// ---- Slots
// ----------------------------------------------------------------------------------------

TEST(ForgottenTargets, counts_go_to_other_when_the_place_is_given_away) {
  // Also if no snapshot has shown the counts yet.
  for (bool flushed : {false, true}) {
    Workshop w(full("2"));
    ThreadScope scope(*w.runtime);
    MethodId d = w.dispatcher(), m = w.adder(1);
    dispatch(w, d, m, 1, 45);
    if (flushed) {
      Seen s = seen_by(w);
      EXPECT_EQ(s.other, 0u);
      EXPECT_EQ(s.targets[1].count, 45u);
    }
    w.remove(m);
    MethodId next = w.adder(2);
    ASSERT_EQ(next.index(), m.index());
    Seen s = seen_by(w);
    EXPECT_EQ(s.other, 45u) << flushed;
    EXPECT_EQ(s.other_estimate, 45u) << flushed;
    EXPECT_TRUE(s.targets.empty()) << flushed;
    dispatch(w, d, next, 2, 30);
    s = seen_by(w);
    EXPECT_EQ(s.other, 45u) << flushed;
    ASSERT_EQ(s.targets.size(), 1u) << flushed;
    EXPECT_EQ(s.targets.begin()->second.count, 30u) << flushed;
    EXPECT_EQ(s.targets.begin()->second.estimate, 30u) << flushed;
  }
}

TEST(ForgottenTargets, a_removed_method_is_named_until_its_place_is_given_away) {
  Workshop w(full("8"));
  ThreadScope scope(*w.runtime);
  MethodId d = w.dispatcher(), m = w.adder(1);
  dispatch(w, d, m, 1, 45);
  w.remove(m);
  EXPECT_EQ(seen_by(w).targets[1].count, 45u);
}

// Twenty methods use one slot, and so one entry, one after the other.
TEST(ForgottenTargets, nothing_is_credited_to_another_however_often_a_place_is_used) {
  Workshop w(full("2"));
  ThreadScope scope(*w.runtime);
  MethodId d = w.dispatcher();
  uint64_t before = 0;
  for (uint64_t i = 1; i <= 20; ++i) {
    MethodId m = w.adder(i);
    dispatch(w, d, m, i, 10 * i);
    Seen s = seen_by(w);
    ASSERT_EQ(s.other, before) << i;
    ASSERT_EQ(s.targets.size(), 1u) << i;
    ASSERT_EQ(s.targets.begin()->second.count, 10 * i) << i;
    before += 10 * i;
    w.remove(m);
  }
}

TEST(ForgottenTargets, tables_of_optimized_code_keep_no_places) {
  Workshop w(optimizing("3"));
  ThreadScope scope(*w.runtime);
  MethodId d = w.dispatcher(), often = w.adder(1);
  for (uint64_t i = 0; i < 200'000; ++i) w.call(d, {w.address(often), i});
  for (uint64_t n = 2; n < 200; ++n) {
    MethodId m = w.at_least(5);
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(w.call(d, {w.address(m), i + 5}).bits, i + 5);
    w.remove(m);
  }
  Seen s = seen_by(w);
  for (const auto& [f, e] : s.targets) {
    if (f != 1) { EXPECT_LE(e.count, 1000u) << f; }
  }
}

// ---- Threads --------------------------------------------------------------------------------------

// Adds and removes `count` methods, each of which gets a few calls; false if no slot is reused for
// a minute.
bool come_and_go(Workshop& w, MethodId d, uint64_t first, uint64_t count) {
  for (uint64_t n = first; n < first + count; ++n) {
    Result<MethodId> m = Error{ErrorCode::kUnsupported, ""};
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!m && std::chrono::steady_clock::now() < end) {
      m = w.try_add("m", kOne, [n](FunctionBuilder& b) {
        b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(static_cast<int64_t>(n))));
      });
      if (m) break;
      w.runtime->quiescent();
      std::this_thread::yield();
    }
    if (!m) return false;
    for (uint64_t x = 0; x < 5; ++x) {
      if (w.call(d, {w.address(*m), x}).bits != x + n) return false;
    }
    w.remove(*m);
  }
  return true;
}

// The thread has counted in its table and is blocked, so it cannot clear entries. When it ends, it
// hands its counts over.
TEST(ForgottenTargets, an_idle_thread_keeps_no_places) {
  Workshop w(full("8"));
  ThreadScope scope(*w.runtime);
  MethodId d = w.dispatcher();
  std::vector<MethodId> named;
  for (uint64_t i = 0; i < 7; ++i) named.push_back(w.adder(i));
  std::binary_semaphore counted{0}, end{0};
  std::thread idle([&] {
    ThreadScope here(*w.runtime);
    for (uint64_t i = 0; i < 7; ++i) dispatch(w, d, named[i], i, 3);
    w.runtime->begin_blocked();
    counted.release();
    end.acquire();
    w.runtime->end_blocked();
  });
  counted.acquire();
  for (MethodId m : named) w.remove(m);
  EXPECT_TRUE(come_and_go(w, d, 100, 500));
  end.release();
  idle.join();
  EXPECT_TRUE(come_and_go(w, d, 1000, 500));
  Seen s = seen_by(w);
  EXPECT_EQ(s.all(), 21u + 5u * 1000);
  EXPECT_GE(s.other, 21u);
}

// Threads call all the time; each counts in its own tables, which no other thread may touch.
TEST(ForgottenTargets, methods_come_and_go_for_ever_while_threads_call) {
  for (const char* workers : {"0", "1"}) {
    Options o = small();
    o.max_methods = 8;
    o.removed_kept = 2;
    ASSERT_TRUE(o.set("workers", workers).ok());
    Workshop w(o);
    MethodId d = w.dispatcher();
    std::atomic<uint64_t> done{0};
    std::atomic<bool> right{true};
    auto run = [&](uint64_t first) {
      ThreadScope scope(*w.runtime);
      if (!come_and_go(w, d, first, 400)) right = false;
      ++done;
    };
    std::thread a(run, 1'000'000), b(run, 2'000'000);
    std::thread caller([&] {
      ThreadScope scope(*w.runtime);
      // Keeps calling the same stub, so that its table is always about to change.
      MethodId own = w.at_least(7);
      while (done < 2) {
        for (uint64_t x = 0; x < 100; ++x) {
          if (w.call(d, {w.address(own), x}).bits != std::max<uint64_t>(x, 7)) right = false;
        }
      }
      w.remove(own);
    });
    a.join();
    b.join();
    caller.join();
    EXPECT_TRUE(right) << workers;
    EXPECT_GE(w.runtime->report().losses.methods_forgotten, 790u) << workers;
  }
}

// ---- Tables that forget ---------------------------------------------------------------------------

// The table has room for both targets, so nothing displaces the old one.
TEST(ForgottenTargets, a_target_that_is_not_called_any_more_fades) {
  for (const char* recent : {"off", "on"}) {
    Options o = full("8");
    ASSERT_TRUE(o.set("recent", recent).ok());
    Workshop w(o);
    ThreadScope scope(*w.runtime);
    MethodId d = w.dispatcher(), before = w.adder(1), now = w.adder(2);
    dispatch(w, d, before, 1, 10'000);
    dispatch(w, d, now, 2, 200'000);
    Seen s = seen_by(w);
    EXPECT_EQ(s.all(), 210'000u) << recent;
    uint64_t estimates = s.other_estimate;
    for (const auto& [f, e] : s.targets) estimates += e.estimate;
    EXPECT_EQ(estimates, 210'000u) << recent;
    if (recent[1] == 'f') {
      EXPECT_EQ(s.targets[1].count, 10'000u);
      EXPECT_EQ(s.targets[2].count, 200'000u);
      continue;
    }
    // The ten thousand were halved at the flushes at calls 2^14, 2^15, 2^16 and 2^17; earlier
    // flushes have left even less of them.
    EXPECT_LE(s.targets[1].count, 10'000u / 16);
    EXPECT_GE(s.targets[2].count, 79'000u) << "what came since the last flush is whole";
    // Asking does not change the profile.
    Seen again = seen_by(w);
    EXPECT_EQ(again.other, s.other);
    EXPECT_EQ(again.targets, s.targets);
  }
}

// Tables lose counts at each window; that is no drift, since the program does the same all the
// time.
TEST(ForgottenTargets, forgetting_is_not_taken_for_drift) {
  Options o = optimizing("4");
  ASSERT_TRUE(o.set("recent", "on").ok());
  Workshop w(o);
  ThreadScope scope(*w.runtime);
  MethodId d = w.dispatcher(), one = w.adder(1), two = w.at_least(5);
  for (uint64_t i = 0; i < 400'000; ++i) w.call(d, {w.address(i % 3 == 0 ? two : one), i + 5});
  Report r = w.runtime->report();
  for (const DecisionRecord& e : r.decisions) EXPECT_NE(e.action, "re_instrument") << e.reason;
  Seen s = seen_by(w);
  ASSERT_EQ(s.targets.size(), 2u);
  double share = static_cast<double>(s.targets[2].estimate) /
                 static_cast<double>(s.targets[1].estimate + s.targets[2].estimate);
  EXPECT_NEAR(share, 1.0 / 3, 0.1);
}

// ---- Copies of tables in use
// ----------------------------------------------------------------------

// Two keys overtake each other, so entries move at every second event; a copy must have each key
// once.
TEST(ForgottenTargets, a_copy_of_a_table_is_whole_while_its_owner_counts) {
  sampler::TableShape shape{4, false, false};
  std::vector<uint64_t> words(shape.words());
  auto count = [&](uint64_t key) { sampler::count_in_table(words.data(), shape, key); };
  for (uint64_t key : {1, 2}) count(key);
  std::atomic<bool> end{false};
  std::thread owner([&] {
    while (!end) {
      for (uint64_t key : {2, 1, 1, 2}) count(key);
    }
  });
  std::vector<uint64_t> copy(shape.words());
  for (int i = 0; i < 200'000; ++i) {
    if (!sampler::copy_table(words.data(), shape, copy.data())) continue;
    const uint64_t* e = copy.data() + shape.entries_at();
    ASSERT_EQ(e[0] + e[2], 3u) << i;
    ASSERT_LE(std::max(e[1], e[3]) - std::min(e[1], e[3]), 1u) << i;
  }
  end = true;
  owner.join();
  ASSERT_TRUE(sampler::copy_table(words.data(), shape, copy.data()));
  // A table that its owner left in the middle of an event cannot be copied.
  words[sampler::kTableSlow] |= sampler::kTableBusy;
  EXPECT_FALSE(sampler::copy_table(words.data(), shape, copy.data()));
}

}  // namespace
}  // namespace uptier::test::forgotten_targets_test
