// The contents of a profile file after a save.
#include "tiering/saved/profile_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "profile/upf/file.h"

namespace uptier::tiering::profile_store_test {
namespace {

constexpr MethodKey kKey{7, 1};

class ProfileStoreTest : public testing::Test {
 protected:
  ProfileStoreTest() {
    char name[] = "/tmp/uptier-store-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~ProfileStoreTest() override { std::filesystem::remove_all(dir_); }

  std::string path() const { return dir_ + "/saved.upf"; }
  // A run that has seen one method with one block, `count` times, in code with this hash.
  static SeenRun run(uint64_t count, uint64_t cfg_hash = 1) {
    SeenRun seen;
    MethodProfile p;
    p.key = kKey;
    p.schema = Schema::block_schema(1, cfg_hash);
    p.counts = p.estimates = {count};
    p.calls = count;
    seen.run.methods[kKey] = p;
    seen.fates[kKey] = {.cfg_hash = cfg_hash};
    seen.info.time = 1'700'000'000;
    seen.info.runs = 1;
    seen.info.weight = ProfileInfo::kRunWeight;
    return seen;
  }
  static Status save(ProfileStore& store, SeenRun seen) {
    return store.save(std::move(seen), 1, profile::Sync::kNo);
  }
  ProfileFile read() const {
    std::ifstream in(path(), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    auto file = profile_from_file(std::as_bytes(std::span(text)));
    EXPECT_TRUE(file.ok());
    return file.ok() ? std::move(*file) : ProfileFile();
  }
  static uint64_t count(const ProfileFile& f) {
    const MethodProfile* m = f.profile.find(kKey);
    return m == nullptr ? 0 : m->counts[0];
  }

  std::string dir_;
};

TEST_F(ProfileStoreTest, runs_are_summed) {
  for (uint64_t seen : {100, 20}) {
    ProfileStore store(path());
    ASSERT_TRUE(save(store, run(seen)).ok());
  }
  EXPECT_EQ(count(read()), 120u);
  EXPECT_EQ(read().info.runs, 2u);
}

TEST_F(ProfileStoreTest, a_process_that_saves_again_is_one_run) {
  ProfileStore store(path());
  ASSERT_TRUE(save(store, run(100)).ok());
  ASSERT_TRUE(save(store, run(130)).ok());
  EXPECT_EQ(count(read()), 130u);
  EXPECT_EQ(read().info.runs, 1u);
}

// Occupies all names that a temporary file may use before it is complete.
class NoNewFiles {
 public:
  explicit NoNewFiles(const std::string& path) {
    for (int i = 0; i < 100; ++i) {
      names_.push_back(path + ".tmp" + std::to_string(i));
      // A folder cannot be taken for a leftover file.
      std::filesystem::create_directory(names_.back());
    }
  }
  ~NoNewFiles() {
    for (const std::string& name : names_) std::filesystem::remove(name);
  }

 private:
  std::vector<std::string> names_;
};

TEST_F(ProfileStoreTest, a_save_that_failed_has_put_nothing_in_the_file) {
  ProfileStore store(path());
  ASSERT_TRUE(save(store, run(100)).ok());
  {
    NoNewFiles refused(path());
    EXPECT_FALSE(save(store, run(130)).ok());
  }
  EXPECT_EQ(count(read()), 100u);
  ASSERT_TRUE(save(store, run(150)).ok());
  EXPECT_EQ(count(read()), 150u) << "with what came on since the save that did not fail";
  EXPECT_EQ(read().info.runs, 1u);
}

TEST_F(ProfileStoreTest, a_first_save_that_failed_leaves_no_file) {
  ProfileStore store(path());
  {
    NoNewFiles refused(path());
    EXPECT_FALSE(save(store, run(130)).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ProfileStoreTest, counts_of_other_code_go) {
  for (uint64_t hash : {1, 2}) {
    ProfileStore store(path());
    ASSERT_TRUE(save(store, run(100 * hash, hash)).ok());
  }
  EXPECT_EQ(count(read()), 200u);
  EXPECT_EQ(read().profile.find(kKey)->schema.cfg_hash, 2u);
  // The same for a method whose code this run knows but has not observed.
  ProfileStore store(path());
  SeenRun nothing = run(1, 3);
  nothing.run.methods.clear();
  ASSERT_TRUE(save(store, nothing).ok());
  EXPECT_EQ(read().profile.find(kKey), nullptr);
}

TEST_F(ProfileStoreTest, runs_that_saw_the_same_in_one_second_are_two) {
  for (int i = 0; i < 2; ++i) {
    ProfileStore store(path());
    ASSERT_TRUE(save(store, run(100)).ok());
  }
  ProfileFile file = read();
  EXPECT_EQ(file.info.uploads.size(), 2u);
  EXPECT_EQ(count(file), 200u);
}

}  // namespace
}  // namespace uptier::tiering::profile_store_test
