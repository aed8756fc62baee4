// Changed code finds the data of the code that it was made from.
#include <gtest/gtest.h>

#include "profile/upf/gathered.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::source_id_test {
namespace {

using profile::Bytes;

class SourceId : public testing::Test {
 protected:
  void count(std::string_view stage, std::string_view scope, std::string_view key, uint64_t n) {
    const GatheredInstrument one{"iree.instrument.counter",
                                 stage,
                                 scope,
                                 key,
                                 "",
                                 list_.keep(std::as_bytes(std::span(&n, 1)))};
    list_.instruments({&one, 1});
  }
  Bytes file() const {
    EXPECT_EQ(list_.problem(), nullptr);
    profile::GatheredSum sum;
    EXPECT_TRUE(profile::add_pieces(list_.pieces(), sum).ok());
    Bytes all = profile::gathered_header(1);
    for (const Piece& p : list_.pieces()) {
      const auto* at = static_cast<const std::byte*>(p.data);
      all.insert(all.end(), at, at + p.bytes);
    }
    return all;
  }
  // Returns {count, changes}; {0, 99} if nothing is known.
  std::pair<uint64_t, uint32_t> ask(const Bytes& file, std::string_view scope,
                                    std::string_view key = "k") const {
    const auto a = query(file, "flow", scope, key);
    if (!a) return {0, 99};
    return {std::get<CounterAnswer>(a->what).count, a->changes};
  }
  using Answer = std::pair<uint64_t, uint32_t>;

  GatherList list_;
};

TEST_F(SourceId, the_parent_answers_for_code_without_data) {
  count("flow", "old", "k", 7);
  list_.source_id("flow", "new", "", "old");
  list_.source_id("", "newer", "", "new");
  EXPECT_EQ(ask(file(), "old"), (Answer{7, 0}));
  EXPECT_EQ(ask(file(), "new"), (Answer{7, 1}));
  EXPECT_EQ(ask(file(), "newer"), (Answer{7, 2}));
  EXPECT_EQ(ask(file(), "other"), (Answer{0, 99}));
  EXPECT_EQ(ask(file(), "new", "another key"), (Answer{0, 99}));
  count("flow", "new", "k", 3);
  EXPECT_EQ(ask(file(), "newer"), (Answer{3, 1})) << "the nearest data counts, and only that";
}

TEST_F(SourceId, a_key_may_have_a_parent_of_its_own) {
  count("flow", "a", "k", 1);
  count("flow", "b", "k", 2);
  count("flow", "a", "l", 3);
  list_.source_id("flow", "new", "", "a");
  list_.source_id("flow", "new", "k", "b");
  list_.source_id("vm", "new", "l", "b");  // another stage
  EXPECT_EQ(ask(file(), "new", "k"), (Answer{2, 1}));
  EXPECT_EQ(ask(file(), "new", "l"), (Answer{3, 1}));
}

TEST_F(SourceId, two_parents_are_none) {
  count("flow", "a", "k", 1);
  list_.source_id("flow", "new", "", "a");
  list_.source_id("flow", "new", "", "b");
  EXPECT_EQ(ask(file(), "new"), (Answer{0, 99}));
}

TEST_F(SourceId, circles_and_long_chains_end) {
  list_.source_id("flow", "a", "", "b");
  list_.source_id("flow", "b", "", "a");
  EXPECT_EQ(ask(file(), "a"), (Answer{0, 99}));
  count("flow", "c0", "k", 5);
  for (uint32_t i = 1; i <= kMostChanges + 1; ++i) {
    list_.source_id("flow", "c" + std::to_string(i), "", "c" + std::to_string(i - 1));
  }
  EXPECT_EQ(ask(file(), "c" + std::to_string(kMostChanges)), (Answer{5, kMostChanges}));
  EXPECT_EQ(ask(file(), "c" + std::to_string(kMostChanges + 1)), (Answer{0, 99}));
}

TEST_F(SourceId, merges_and_saves_keep_it) {
  count("flow", "old", "k", 7);
  list_.source_id("flow", "new", "", "old");
  const Result<ProfileFile> read = profile_from_file(file());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(ask(profile_to_file(*read), "new"), (Answer{7, 1}));
}

TEST_F(SourceId, a_parent_without_a_hash_is_refused) {
  list_.source_id("flow", "new", "", "");
  ASSERT_NE(list_.problem(), nullptr);
}

}  // namespace
}  // namespace uptier::source_id_test
