// Tables of values at a site: nothing is lost, nothing is credited to the wrong value, and frequent
// values are found.
#include "sampler/site_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sampler/site_counts.h"

namespace uptier::test::site_tables_test {
namespace {

using sampler::read_table;
using sampler::TableEntry;
using sampler::TableShape;
using sampler::ValueCounts;

__extension__ using Int128 = __int128;

// A table, compared with an exact count of the same events.
class Counted {
 public:
  explicit Counted(const TableShape& s) : shape_(s), words_(s.words()) {}

  // As in compiled code: a hit of the first entry does not call the function.
  void see(int64_t value) {
    auto key = static_cast<uint64_t>(value);
    uint64_t* first = words_.data() + shape_.entries_at();
    if (first[0] == key) {
      ++first[1];
      ++inline_hits;
    } else {
      sampler::count_in_table(words_.data(), shape_, key);
    }
    ++exact_[value];
    ++events_;
    sum_ += value;
  }

  void age() { sampler::age_table(words_.data(), shape_); }

  ValueCounts check() const {
    ValueCounts c = read_table(words_, shape_);
    EXPECT_EQ(c.count, events_);
    uint64_t total = c.other;
    for (const TableEntry& e : c.entries) {
      total += e.count;
      auto it = exact_.find(static_cast<int64_t>(e.key));
      EXPECT_TRUE(it != exact_.end() && e.count <= it->second) << e.key;
    }
    EXPECT_EQ(total, events_);
    for (size_t i = 1; i < c.entries.size(); ++i) {
      EXPECT_GE(c.entries[i - 1].count, c.entries[i].count);
      EXPECT_NE(c.entries[i - 1].key, c.entries[i].key);
    }
    if (!shape_.sums || events_ == 0) return c;
    EXPECT_EQ(c.sum.low, static_cast<uint64_t>(sum_));
    EXPECT_EQ(c.sum.high, static_cast<uint64_t>(sum_ >> 64));
    EXPECT_EQ(c.least, exact_.begin()->first);
    EXPECT_EQ(c.greatest, exact_.rbegin()->first);
    return c;
  }
  uint64_t exact(uint64_t key) const { return exact_.at(static_cast<int64_t>(key)); }
  uint64_t events() const { return events_; }

  uint64_t inline_hits = 0;

 private:
  TableShape shape_;
  std::vector<uint64_t> words_;
  std::map<int64_t, uint64_t> exact_;
  uint64_t events_ = 0;
  Int128 sum_ = 0;
};

const TableShape kShapes[] = {{1, false, false}, {1, true, true},    {2, true, false},
                              {8, true, false},  {16, false, false}, {16, true, true},
                              {16, true, false}, {64, true, true}};

TEST(SiteTables, an_empty_table_is_all_zeros) {
  for (const TableShape& s : kShapes) {
    Counted t(s);
    EXPECT_EQ(t.check(), ValueCounts{});
  }
}

TEST(SiteTables, up_to_as_many_values_as_entries_are_exact) {
  for (const TableShape& s : kShapes) {
    Counted t(s);
    std::mt19937_64 random(1);
    for (int i = 0; i < 5000; ++i) t.see(static_cast<int64_t>(random() % s.top) - 1);
    ValueCounts c = t.check();
    EXPECT_EQ(c.other, 0u);
    EXPECT_EQ(c.entries.size(), s.top);
    for (const TableEntry& e : c.entries) EXPECT_EQ(e.count, t.exact(e.key));
  }
}

TEST(SiteTables, zero_is_a_value_like_any_other) {
  Counted t({4, true, false});
  t.see(0);
  t.see(7);
  t.see(0);
  t.see(-3);
  EXPECT_EQ(t.check().entries, (std::vector<TableEntry>{{0, 2}, {7, 1}, {uint64_t(-3), 1}}));
}

TEST(SiteTables, extremes_and_sums_go_beyond_64_bits) {
  Counted t({2, true, false});
  for (int i = 0; i < 1000; ++i) {
    for (int64_t v : {INT64_MIN, INT64_MIN, INT64_MAX, int64_t{1}, INT64_MIN + 1}) t.see(v);
  }
  t.check();
  Counted u({2, true, true});
  for (int64_t i = 0; i < 3000; ++i) u.see(INT64_MAX - i);
  u.check();
}

TEST(SiteTables, uniform_values_are_mostly_other_and_none_is_inflated) {
  for (const TableShape& s : kShapes) {
    Counted t(s);
    std::mt19937_64 random(2);
    for (int i = 0; i < 30'000; ++i) t.see(static_cast<int64_t>(random() % 100'000) - 50'000);
    ValueCounts c = t.check();
    EXPECT_GT(c.other, t.events() * 9 / 10);
  }
}

// Value k has weight 1 / (k + 1)^2: the first six make up 91 % of the events.
TEST(SiteTables, of_skewed_values_the_top_ones_are_right) {
  for (const TableShape& s : kShapes) {
    if (s.top < 8) continue;
    Counted t(s);
    std::mt19937_64 random(3);
    std::vector<double> weights;
    for (int k = 0; k < 1000; ++k) weights.push_back(1.0 / ((k + 1.0) * (k + 1.0)));
    std::discrete_distribution<int> skewed(weights.begin(), weights.end());
    for (int i = 0; i < 200'000; ++i) t.see(1000 + skewed(random));
    ValueCounts c = t.check();
    ASSERT_GE(c.entries.size(), 6u);
    for (uint64_t k = 0; k < (s.recent ? 3u : 5u); ++k) EXPECT_EQ(c.entries[k].key, 1000 + k);
    if (s.recent) continue;
    EXPECT_EQ(c.entries[0].count, t.exact(1000)) << s.top;
    EXPECT_GT(t.inline_hits, t.events() * 55 / 100);  // the first value has 61 %
  }
}

// Two values make up 4 % each. They are found although two values of 1 % have held entries for a
// long time.
TEST(SiteTables, what_is_frequent_is_found_among_many_that_are_not) {
  constexpr int kBefore = 20'000, kEvents = 200'000;
  int found = 0, whole = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Counted t({4, true, false});
    std::mt19937_64 random(seed);
    for (int i = 0; i < kEvents; ++i) {
      uint64_t of = random() % 100;
      auto rare = 10 + static_cast<int64_t>(random() % 3000);
      bool frequent = of < 8 && i >= kBefore;
      t.see(frequent   ? static_cast<int64_t>(of / 4)
            : of >= 98 ? static_cast<int64_t>(of) - 96
                       : rare);
    }
    for (const TableEntry& e : t.check().entries) {
      found += e.key < 2 ? 1 : 0;
      whole += e.key < 2 && e.count > t.exact(e.key) / 2 ? 1 : 0;
    }
  }
  EXPECT_GT(found, 38) << "of 40";
  EXPECT_GT(whole, 36);
}

// Three values make up most of the events, so few others compete. The fourth entry must not be held
// forever by a value that came once in 50 while another comes once in six.
TEST(SiteTables, an_entry_that_is_seen_rarely_makes_room) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Counted t({4, true, false});
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < 1'000; ++i) t.see(i % 4);  // each value gets its entry
    for (int i = 0; i < 100'000; ++i) {
      uint64_t of = random() % 100;
      t.see(of < 40 ? 0 : of < 60 ? 1 : of < 80 ? 2 : of < 82 ? 3 : of < 98 ? 4 : 5);
    }
    for (const TableEntry& e : t.check().entries) found += e.key == 4 ? 1 : 0;
  }
  EXPECT_GT(found, 18) << "of 20";
}

// Phases in sequence, each with its own dozen values.
TEST(SiteTables, a_new_phase_gets_in) {
  for (const TableShape& s : kShapes) {
    if (s.top < 8) continue;
    Counted t(s);
    std::mt19937_64 random(4);
    for (int64_t phase = 0; phase < 6; ++phase) {
      for (int i = 0; i < 20'000; ++i) {
        int64_t v = static_cast<int64_t>(random() % 4);
        t.see(100 * phase + (v < 3 ? 0 : static_cast<int64_t>(random() % 12)));
        if (s.recent && i == 10'000) t.age();  // as at a flush
      }
      ValueCounts c = t.check();
      auto of_phase = [&](const TableEntry& e) { return e.key / 100 == uint64_t(phase); };
      EXPECT_TRUE(std::any_of(c.entries.begin(), c.entries.end(), of_phase)) << phase;
      if (!s.recent || s.top > 16 || phase < 2) continue;
      EXPECT_TRUE(of_phase(c.entries[0])) << phase;
    }
  }
}

// After a million events of one value, another takes over: hits soon become cheap again.
TEST(SiteTables, the_first_entry_follows_a_change_of_phase) {
  for (bool recent : {false, true}) {
    Counted t({16, true, recent});
    for (int i = 0; i < 1'000'000; ++i) t.see(5);
    t.see(6);
    t.inline_hits = 0;
    for (int i = 0; i < 10'000; ++i) t.see(6);
    EXPECT_GT(t.inline_hits, 9'800u);
    t.check();
  }
}

// Half of each count moves to `other` if there was something since the last time, and nothing is
// lost.
TEST(SiteTables, a_table_ages) {
  for (const TableShape& s : kShapes) {
    Counted t(s);
    std::mt19937_64 random(5);
    for (int i = 0; i < 5'000; ++i) t.see(static_cast<int64_t>(random() % 3 + random() % 5));
    for (int i = 0; i < 3'000; ++i) t.see(3);  // in the end they hit the first entry directly
    ValueCounts before = t.check();
    t.age();
    ValueCounts after = t.check();
    for (const TableEntry& e : before.entries) {
      uint64_t stays = 0;
      for (const TableEntry& now : after.entries) stays += now.key == e.key ? now.count : 0;
      EXPECT_EQ(stays, e.count / 2) << s.top;
    }
    t.age();  // there were no events since
    EXPECT_EQ(t.check(), after);
    for (int i = 0; i < 63; ++i) t.see(3);
    ValueCounts few = t.check();
    t.age();
    EXPECT_EQ(t.check(), few) << "63 events are no window";
    for (int round = 0; round < 40; ++round) {
      t.age();
      for (int i = 0; i < 64; ++i) t.see(1'000'000);
    }
    ValueCounts last = t.check();
    ASSERT_FALSE(last.entries.empty());
    EXPECT_EQ(last.entries[0].key, 1'000'000u);
    for (size_t i = 1; i < last.entries.size(); ++i) EXPECT_LE(last.entries[i].count, 1u);
  }
}

TEST(SiteTables, shapes_travel_in_one_word) {
  for (const TableShape& s : kShapes) {
    TableShape back =
        TableShape::unpack(static_cast<uint64_t>(int64_t(int32_t(s.packed()))), s.sums);
    EXPECT_EQ(back.top, s.top);
    EXPECT_EQ(back.recent, s.recent);
    EXPECT_EQ(back.words(), s.words());
  }
}

}  // namespace
}  // namespace uptier::test::site_tables_test
