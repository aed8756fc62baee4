// Listing directories, and the names of the preopened ones.
#include <set>

#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_dir_test {
namespace {

struct Entry {
  std::string name;
  uint64_t inode = 0;
  uint64_t next = 0;
  uint8_t type = 0;
  auto operator<=>(const Entry&) const = default;
};

class WasiDir : public testing::Test {
 protected:
  WasiDir() : guest_(box_config(world_)) {}

  std::string readdir(uint32_t fd, uint32_t room, uint64_t cookie) {
    guest_.release_all();
    buffer_ = guest_.alloc(room + 1);
    guest_.bytes[buffer_ + room] = 0x5a;
    const uint32_t used = guest_.alloc(4);
    const std::string error = guest_.call("fd_readdir", {fd, buffer_, room, cookie, used});
    EXPECT_EQ(guest_.bytes[buffer_ + room], 0x5a);
    if (error == "ESUCCESS") used_ = guest_.u32(used);
    return error;
  }
  // Returns the complete entries of the last readdir.
  std::vector<Entry> parse() const {
    std::vector<Entry> entries;
    for (uint32_t at = 0; at + 24 <= used_;) {
      const uint32_t head = buffer_ + at;
      const uint32_t size = guest_.u32(head + 16);
      if (at + 24 + size > used_) break;
      entries.push_back({guest_.text(head + 24, size), guest_.u64(head + 8), guest_.u64(head),
                         guest_.bytes[head + 20]});
      at += 24 + size;
    }
    return entries;
  }
  std::vector<Entry> list(uint32_t fd) {
    EXPECT_EQ(readdir(fd, 100'000, 0), "ESUCCESS");
    EXPECT_LT(used_, 100'000u);
    return parse();
  }

  WasiWorld world_;
  Guest guest_;
  uint32_t buffer_ = 0;
  uint32_t used_ = 0;
};

TEST_F(WasiDir, entries_carry_names_inodes_and_types) {
  WasiWorld::write(world_.in_box("file"), "");
  std::filesystem::create_directory(world_.in_box("dir"));
  std::filesystem::create_symlink("x", world_.in_box("link"));
  std::set<std::string> names;
  uint64_t own = 0;
  for (const Entry& entry : list(kBox)) {
    EXPECT_TRUE(names.insert(entry.name).second);
    struct stat st;
    ASSERT_EQ(::lstat(world_.in_box(entry.name).c_str(), &st), 0);
    if (entry.name != "..") { EXPECT_EQ(entry.inode, st.st_ino) << entry.name; }
    if (entry.name == ".") own = entry.inode;
    if (entry.name == "file") { EXPECT_EQ(entry.type, 4); }
    if (entry.name == "link") { EXPECT_EQ(entry.type, 7); }
    if (entry.name == "dir" || entry.name[0] == '.') { EXPECT_EQ(entry.type, 3); }
  }
  EXPECT_EQ(names, (std::set<std::string>{".", "..", "file", "dir", "link"}));
  // The entry ".." must not reveal the parent: it has the inode of the directory itself.
  for (const Entry& entry : list(kBox)) {
    if (entry.name == "..") { EXPECT_EQ(entry.inode, own); }
  }
}

TEST_F(WasiDir, paging_with_every_buffer_size_gives_the_same_entries_once) {
  for (int i = 0; i < 30; ++i) {
    WasiWorld::write(world_.in_box(std::string(static_cast<size_t>(1 + i), 'a' + i % 26)), "");
  }
  const std::vector<Entry> all = list(kBox);
  ASSERT_EQ(all.size(), 32u);
  for (uint32_t room = 1; room <= 200; ++room) {
    SCOPED_TRACE(room);
    std::vector<Entry> seen;
    uint64_t cookie = 0;
    for (int calls = 0; calls < 100; ++calls) {
      ASSERT_EQ(readdir(kBox, room, cookie), "ESUCCESS");
      ASSERT_LE(used_, room);
      const std::vector<Entry> page = parse();
      seen.insert(seen.end(), page.begin(), page.end());
      // A page that is not full is the last one; a full page without a complete entry needs a
      // larger buffer.
      if (used_ < room || page.empty()) break;
      cookie = page.back().next;
    }
    const size_t fits = room >= 24 + 30 ? all.size() : seen.size();
    EXPECT_EQ(seen, std::vector<Entry>(all.begin(), all.begin() + static_cast<long>(fits)));
    if (room < 24 + 1) { EXPECT_TRUE(seen.empty()); }
  }
}

TEST_F(WasiDir, a_cut_entry_is_a_prefix_and_fills_the_buffer) {
  WasiWorld::write(world_.in_box("a-rather-long-name"), "");
  const std::vector<Entry> all = list(kBox);
  const std::string whole = guest_.text(buffer_, used_);
  for (uint32_t room = 0; room <= whole.size(); ++room) {
    ASSERT_EQ(readdir(kBox, room, 0), "ESUCCESS");
    EXPECT_EQ(used_, room);
    EXPECT_EQ(guest_.text(buffer_, used_), whole.substr(0, room));
  }
  ASSERT_EQ(readdir(kBox, static_cast<uint32_t>(whole.size()) + 1, 0), "ESUCCESS");
  EXPECT_EQ(used_, whole.size());
}

TEST_F(WasiDir, cookies_stay_good_while_entries_are_removed) {
  std::set<std::string> expected = {".", ".."};
  for (int i = 0; i < 50; ++i) {
    const std::string name = std::string("file").append(std::to_string(i));
    WasiWorld::write(world_.in_box(name), "");
    expected.insert(name);
  }
  std::set<std::string> seen;
  uint64_t cookie = 0;
  do {
    ASSERT_EQ(readdir(kBox, 100, cookie), "ESUCCESS");
    for (const Entry& entry : parse()) {
      EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
      cookie = entry.next;
      if (entry.name[0] != '.') std::filesystem::remove(world_.in_box(entry.name));
    }
  } while (used_ == 100);
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(list(kBox).size(), 2u);
}

TEST_F(WasiDir, beginning_again_shows_the_directory_as_it_is_now) {
  EXPECT_EQ(list(kBox).size(), 2u);
  WasiWorld::write(world_.in_box("new"), "");
  EXPECT_EQ(list(kBox).size(), 3u);
}

TEST_F(WasiDir, a_cookie_from_nowhere_is_the_end_or_an_entry) {
  WasiWorld::write(world_.in_box("file"), "");
  const std::vector<Entry> all = list(kBox);
  for (const uint64_t cookie : {uint64_t{3}, uint64_t{4}, uint64_t{1} << 32, UINT64_MAX}) {
    ASSERT_EQ(readdir(kBox, 200, cookie), "ESUCCESS");
    EXPECT_EQ(used_, 0u);
  }
  ASSERT_EQ(readdir(kBox, 200, 2), "ESUCCESS");
  EXPECT_EQ(parse(), std::vector<Entry>(all.begin() + 2, all.end()));
}

TEST_F(WasiDir, many_entries_are_all_listed) {
  for (int i = 0; i < 600; ++i)
    WasiWorld::write(world_.in_box(std::string("f").append(std::to_string(i))), "");
  EXPECT_EQ(list(kBox).size(), 602u);
}

TEST_F(WasiDir, only_directories_can_be_listed) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  EXPECT_EQ(readdir(guest_.fd, 100, 0), "ENOTDIR");
  EXPECT_EQ(readdir(77, 100, 0), "EBADF");
}

TEST_F(WasiDir, preopens_tell_their_guest_names) {
  WasiConfig config = box_config(world_);
  config.preopens = {{world_.box(), "/box"}, {world_.root() + "/outside", "a longer name"}};
  Guest guest(std::move(config));
  const uint32_t at = guest.alloc(8);
  const uint32_t name = guest.alloc(20);
  ASSERT_EQ(guest.call("fd_prestat_get", {3, at}), "ESUCCESS");
  EXPECT_EQ(guest.u32(at), 0u);
  EXPECT_EQ(guest.u32(at + 4), 4u);
  EXPECT_EQ(guest.call("fd_prestat_dir_name", {3, name, 3}), "ENAMETOOLONG");
  EXPECT_EQ(guest.bytes[name], 0xcc);
  ASSERT_EQ(guest.call("fd_prestat_dir_name", {3, name, 20}), "ESUCCESS");
  EXPECT_EQ(guest.text(name, 4), "/box");
  EXPECT_EQ(guest.bytes[name + 4], 0xcc);
  ASSERT_EQ(guest.call("fd_prestat_get", {4, at}), "ESUCCESS");
  EXPECT_EQ(guest.u32(at + 4), 13u);
  ASSERT_EQ(guest.call("fd_prestat_dir_name", {4, name, 13}), "ESUCCESS");
  EXPECT_EQ(guest.text(name, 13), "a longer name");
  EXPECT_EQ(guest.call("fd_prestat_get", {5, at}), "EBADF");
  EXPECT_EQ(guest.call("fd_prestat_get", {0, at}), "EBADF");
  ASSERT_EQ(guest.open("."), "ESUCCESS");
  EXPECT_EQ(guest.call("fd_prestat_get", {guest.fd, at}), "EBADF");
  ASSERT_EQ(guest.call("fd_close", {3}), "ESUCCESS");
  EXPECT_EQ(guest.call("fd_prestat_get", {3, at}), "EBADF");
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_dir_test
