// Spilling to a file and back changes nothing; and the ids of strings in a table.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "profile/base/spill.h"
#include "profile/upf/idb.h"
#include "tests/support/random.h"

namespace uptier::profile::upf_spill_test {
namespace {

Bytes some_bytes(test::Random& random, size_t size) {
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
  return bytes;
}

TEST(UpfSpill, gives_all_bytes_in_order_as_often_as_it_is_asked) {
  Result<Spill> spill = Spill::create("/tmp");
  ASSERT_TRUE(spill.ok()) << spill.error().message;
  test::Random random(1);
  Bytes all;
  for (const size_t size : {1, 0, 70'000, 5, 200'000, 65'536}) {
    const Bytes piece = some_bytes(random, size);
    spill->append(piece);
    all.insert(all.end(), piece.begin(), piece.end());
  }
  const Spill moved = std::move(*spill);
  for (int i = 0; i < 2; ++i) {
    Bytes read;
    EXPECT_EQ(moved.each([&](ByteSpan piece) {
      read.insert(read.end(), piece.begin(), piece.end());
      return 0;
    }),
              0);
    EXPECT_EQ(read, all);
  }
}

TEST(UpfSpill, stops_where_nobody_takes_more) {
  Result<Spill> spill = Spill::create("/tmp");
  ASSERT_TRUE(spill.ok());
  spill->append(Bytes(300'000));
  int pieces = 0;
  EXPECT_EQ(spill->each([&](ByteSpan) { return ++pieces == 2 ? ENOSPC : 0; }), ENOSPC);
  EXPECT_EQ(pieces, 2);
}

TEST(UpfSpill, leaves_no_name_and_wants_a_folder) {
  char name[] = "/tmp/uptier-spill-XXXXXX";
  const std::string folder = mkdtemp(name);
  {
    Result<Spill> spill = Spill::create(folder);
    ASSERT_TRUE(spill.ok());
    spill->append(Bytes(10));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
  EXPECT_FALSE(Spill::create(folder).ok());
}

// Compared with a map.
TEST(UpfSpill, strings_have_one_id_each) {
  test::Random random(2);
  StringTableBuilder builder;
  std::map<std::string, uint32_t> ids = {{"", 0}};
  std::vector<std::string> texts = {""};
  for (int i = 0; i < 5000; ++i) {
    std::string text(random.below(4), 'a');
    for (char& c : text) c = static_cast<char>(random.below(12));  // NULs too
    const auto [at, added] = ids.emplace(text, texts.size());
    if (added) texts.push_back(text);
    ASSERT_EQ(builder.add(text), at->second);
  }
  const Bytes content = builder.content();
  EXPECT_EQ(content.size(), builder.content_size());
  IdbDamage damage;
  Result<StringTable> read = StringTable::read(content, damage);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), texts.size());
  for (uint32_t id = 0; id < texts.size(); ++id) EXPECT_EQ(read->find(id), texts[id]);
}

}  // namespace
}  // namespace uptier::profile::upf_spill_test
