// Operations on paths that stay inside, with both ways to resolve them.
#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_path_test {
namespace {

using WasiPath = WasiResolved;
INSTANTIATE_TEST_SUITE_P(resolver, WasiPath, both_resolvers(), resolver_name);

Guest::OpenOptions with(uint16_t oflags, uint64_t base = wasi::kFdRead,
                        uint32_t lookup = wasi::kLookupFollow) {
  Guest::OpenOptions o;
  o.oflags = oflags;
  o.base = base;
  o.lookup = lookup;
  return o;
}

TEST_P(WasiPath, the_resolver_asked_for_is_in_use) {
  EXPECT_EQ(guest->wasi->resolver(), GetParam());
}

TEST_P(WasiPath, opening_obeys_create_exclusive_truncate_and_directory) {
  EXPECT_EQ(guest->open("file"), "ENOENT");
  EXPECT_EQ(guest->create("file"), "ESUCCESS");
  EXPECT_EQ(guest->write(guest->fd, "content"), "ESUCCESS");
  EXPECT_EQ(guest->open("file", with(wasi::kOpenCreat | wasi::kOpenExcl)), "EEXIST");
  EXPECT_EQ(guest->open("file", with(wasi::kOpenDirectory)), "ENOTDIR");
  EXPECT_EQ(WasiWorld::content(world.in_box("file")), "content");
  EXPECT_EQ(guest->open("file", with(wasi::kOpenTrunc)), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world.in_box("file")), "");
  ASSERT_EQ(guest->path_call("path_create_directory", "dir"), "ESUCCESS");
  EXPECT_EQ(guest->open("dir", with(wasi::kOpenDirectory)), "ESUCCESS");
  EXPECT_EQ(guest->open("dir"), "ESUCCESS");
  EXPECT_EQ(guest->open("dir", with(0, wasi::kFdRead | wasi::kFdWrite)), "EISDIR");
  EXPECT_EQ(guest->open("dir", with(wasi::kOpenCreat)), "EISDIR");
  EXPECT_EQ(guest->open("new", with(wasi::kOpenCreat | wasi::kOpenDirectory)), "EINVAL");
  EXPECT_EQ(guest->open("new", with(1 << 4)), "EINVAL");
  EXPECT_EQ(guest->open("new", with(0, 0, 2)), "EINVAL");
  EXPECT_FALSE(WasiWorld::exists(world.in_box("new")));
}

TEST_P(WasiPath, strange_spellings_of_a_path_are_the_same_path) {
  std::filesystem::create_directories(world.in_box("dir/nested"));
  WasiWorld::write(world.in_box("dir/nested/file"), "deep");
  for (const char* path :
       {"dir/nested/file", "./dir/./nested/.//file", "dir//nested///file",
        "dir/nested/../../dir/nested/../nested/file", "dir/../dir/nested/file"}) {
    EXPECT_EQ(guest->open(path), "ESUCCESS") << path;
    EXPECT_EQ(guest->read(guest->fd, 10), "ESUCCESS");
    EXPECT_EQ(guest->data, "deep");
  }
  for (const char* path :
       {".", "./", "dir", "dir/", "dir///", "dir/.", "dir/nested/..", "dir/.."}) {
    EXPECT_EQ(guest->open(path, with(wasi::kOpenDirectory)), "ESUCCESS") << path;
  }
}

TEST_P(WasiPath, bad_paths_are_refused) {
  WasiWorld::write(world.in_box("file"), "");
  EXPECT_EQ(guest->open(""), "ENOENT");
  EXPECT_EQ(guest->open(std::string_view("file\0", 5)), "EINVAL");
  EXPECT_EQ(guest->open(std::string_view("fi\0le", 5)), "EINVAL");
  EXPECT_EQ(guest->open("file/"), "ENOTDIR");
  EXPECT_EQ(guest->open("file///"), "ENOTDIR");
  EXPECT_EQ(guest->open("file/."), "ENOTDIR");
  EXPECT_EQ(guest->open("file/.."), "ENOTDIR");
  EXPECT_EQ(guest->open("file/x"), "ENOTDIR");
  EXPECT_EQ(guest->open("none/x"), "ENOENT");
  EXPECT_EQ(guest->open("none/"), "ENOENT");
  EXPECT_EQ(guest->create("none/"), "EISDIR");
  EXPECT_EQ(guest->open(std::string(256, 'n')), "ENAMETOOLONG");
  EXPECT_EQ(guest->open(std::string(255, 'n')), "ENOENT");
  EXPECT_EQ(guest->open(std::string(4096, '/')), "ENAMETOOLONG");
  EXPECT_EQ(guest->path_call("path_create_directory", std::string(256, 'n')), "ENAMETOOLONG");
  EXPECT_EQ(guest->path_call("path_create_directory", "file/new"), "ENOTDIR");
}

TEST_P(WasiPath, links_inside_are_followed_when_asked) {
  std::filesystem::create_directories(world.in_box("a/b"));
  WasiWorld::write(world.in_box("a/b/file"), "found");
  ASSERT_EQ(guest->symlink("a/b", "dirlink"), "ESUCCESS");
  ASSERT_EQ(guest->symlink("../b/file", "a/b/up"), "ESUCCESS");
  ASSERT_EQ(guest->symlink("dirlink/up", "chain"), "ESUCCESS");
  ASSERT_EQ(guest->symlink("a/b/", "slash"), "ESUCCESS");
  for (const char* path : {"dirlink/file", "a/b/up", "chain", "slash/file", "dirlink/../b/up"}) {
    EXPECT_EQ(guest->open(path), "ESUCCESS") << path;
    EXPECT_EQ(guest->read(guest->fd, 10), "ESUCCESS");
    EXPECT_EQ(guest->data, "found");
  }
  EXPECT_EQ(guest->open("chain", with(0, wasi::kFdRead, 0)), "ELOOP");
  EXPECT_EQ(guest->open("dirlink/file", with(0, wasi::kFdRead, 0)), "ESUCCESS");
  EXPECT_EQ(guest->open("dirlink/", with(wasi::kOpenDirectory, 0, 0)), "ESUCCESS");
  EXPECT_EQ(guest->open("dirlink", with(wasi::kOpenDirectory, 0, 0)), "ENOTDIR");
  EXPECT_EQ(guest->open("dirlink", with(wasi::kOpenDirectory)), "ESUCCESS");
  EXPECT_EQ(guest->open("chain", with(wasi::kOpenCreat | wasi::kOpenExcl)), "EEXIST");
}

TEST_P(WasiPath, dangling_and_looping_links_are_errors_but_creation_goes_through) {
  ASSERT_EQ(guest->symlink("target", "dangling"), "ESUCCESS");
  ASSERT_EQ(guest->symlink("loop", "loop"), "ESUCCESS");
  EXPECT_EQ(guest->open("dangling"), "ENOENT");
  EXPECT_EQ(guest->open("dangling", with(0, 0, 0)), "ELOOP");
  EXPECT_EQ(guest->open("loop"), "ELOOP");
  EXPECT_EQ(guest->open("loop/x"), "ELOOP");
  EXPECT_EQ(guest->filestat("loop"), "ESUCCESS");
  EXPECT_EQ(guest->filestat("loop", wasi::kLookupFollow), "ELOOP");
  EXPECT_EQ(guest->create("dangling"), "ESUCCESS");
  EXPECT_TRUE(WasiWorld::exists(world.in_box("target")));
  EXPECT_TRUE(std::filesystem::is_symlink(world.in_box("dangling")));
}

TEST_P(WasiPath, rights_decide_what_an_opened_file_can_do) {
  WasiWorld::write(world.in_box("file"), "content");
  ASSERT_EQ(guest->open("file", with(0, 0)), "ESUCCESS");
  EXPECT_EQ(guest->read(guest->fd, 1), "ENOTCAPABLE");
  ASSERT_EQ(guest->open("file", with(0, wasi::kFdRead | wasi::kPathOpen | (1u << 28))), "ESUCCESS");
  const uint32_t at = guest->alloc(24);
  ASSERT_EQ(guest->call("fd_fdstat_get", {guest->fd, at}), "ESUCCESS");
  EXPECT_EQ(guest->u64(at + 8), wasi::kFdRead);  // rights of directories and sockets are dropped
  EXPECT_EQ(guest->write(guest->fd, "x"), "ENOTCAPABLE");
  ASSERT_EQ(guest->open("file", with(0, wasi::kFdWrite)), "ESUCCESS");
  EXPECT_EQ(guest->write(guest->fd, "C"), "ESUCCESS");
  EXPECT_EQ(guest->read(guest->fd, 1), "ENOTCAPABLE");
}

TEST_P(WasiPath, a_directory_hands_on_only_what_it_may) {
  std::filesystem::create_directory(world.in_box("dir"));
  WasiWorld::write(world.in_box("dir/file"), "content");
  Guest::OpenOptions o = with(wasi::kOpenDirectory, wasi::kPathOpen);
  o.inheriting = wasi::kFdRead;
  ASSERT_EQ(guest->open("dir", o), "ESUCCESS");
  Guest::OpenOptions in = with(0);
  in.dir = guest->fd;
  const uint32_t dir = guest->fd;
  EXPECT_EQ(guest->open("file", in), "ESUCCESS");
  in.base = wasi::kFdRead | wasi::kFdWrite;
  EXPECT_EQ(guest->open("file", in), "ENOTCAPABLE");
  in.base = wasi::kFdRead;
  in.inheriting = wasi::kFdWrite;
  EXPECT_EQ(guest->open("file", in), "ENOTCAPABLE");
  in.inheriting = 0;
  in.fdflags = wasi::kFdSyncFlag;
  EXPECT_EQ(guest->open("file", in), "ENOTCAPABLE");
  in.fdflags = 0;
  in.oflags = wasi::kOpenCreat;
  EXPECT_EQ(guest->open("file", in), "ENOTCAPABLE");
  in.oflags = wasi::kOpenTrunc;
  EXPECT_EQ(guest->open("file", in), "ENOTCAPABLE");
  EXPECT_EQ(WasiWorld::content(world.in_box("dir/file")), "content");
  EXPECT_EQ(guest->path_call("path_create_directory", "d", dir), "ENOTCAPABLE");
  EXPECT_EQ(guest->path_call("path_unlink_file", "file", dir), "ENOTCAPABLE");
  EXPECT_EQ(guest->path_call("path_remove_directory", "d", dir), "ENOTCAPABLE");
  EXPECT_EQ(guest->filestat("file", 0, dir), "ENOTCAPABLE");
  const uint32_t buffer = guest->alloc(64);
  EXPECT_EQ(guest->call("fd_readdir", {dir, buffer, 60, 0, buffer + 60}), "ENOTCAPABLE");
}

TEST_P(WasiPath, a_file_is_no_directory_to_start_from) {
  ASSERT_EQ(guest->create("file"), "ESUCCESS");
  const uint32_t file = guest->fd;
  Guest::OpenOptions o;
  o.dir = file;
  EXPECT_EQ(guest->open("x", o), "ENOTDIR");
  EXPECT_EQ(guest->filestat("x", 0, file), "ENOTDIR");
  EXPECT_EQ(guest->path_call("path_unlink_file", "x", file), "ENOTDIR");
}

TEST_P(WasiPath, directories_are_made_and_removed) {
  const char* make = "path_create_directory";
  const char* remove = "path_remove_directory";
  EXPECT_EQ(guest->path_call(make, "dir"), "ESUCCESS");
  EXPECT_EQ(guest->path_call(make, "dir"), "EEXIST");
  EXPECT_EQ(guest->path_call(make, "dir/sub/"), "ESUCCESS");
  EXPECT_EQ(guest->path_call(make, "none/sub"), "ENOENT");
  EXPECT_EQ(guest->path_call(make, "."), "EEXIST");
  EXPECT_EQ(guest->path_call(make, "dir/.."), "EEXIST");
  EXPECT_EQ(guest->path_call(remove, "dir"), "ENOTEMPTY");
  EXPECT_EQ(guest->path_call(remove, "."), "EINVAL");
  EXPECT_EQ(guest->path_call(remove, "dir/sub/.."), "EINVAL");  // would remove "dir" itself, so it
                                                                // is refused
  EXPECT_EQ(guest->path_call(remove, "dir/sub/"), "ESUCCESS");
  EXPECT_EQ(guest->path_call(remove, "dir"), "ESUCCESS");
  EXPECT_EQ(guest->path_call(remove, "dir"), "ENOENT");
  WasiWorld::write(world.in_box("file"), "");
  EXPECT_EQ(guest->path_call(remove, "file"), "ENOTDIR");
  EXPECT_EQ(guest->path_call(remove, "file/"), "ENOTDIR");
}

TEST_P(WasiPath, unlinking_takes_the_name_and_not_what_a_link_points_to) {
  const char* unlink = "path_unlink_file";
  WasiWorld::write(world.in_box("file"), "stays");
  std::filesystem::create_directory(world.in_box("dir"));
  ASSERT_EQ(guest->symlink("file", "link"), "ESUCCESS");
  EXPECT_EQ(guest->path_call(unlink, "link/"), "ENOTDIR");
  EXPECT_EQ(guest->path_call(unlink, "link"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world.in_box("file")), "stays");
  EXPECT_EQ(guest->path_call(unlink, "dir"), "EISDIR");
  EXPECT_EQ(guest->path_call(unlink, "dir/"), "EISDIR");
  EXPECT_EQ(guest->path_call(unlink, "."), "EISDIR");
  EXPECT_EQ(guest->path_call(unlink, "file/"), "ENOTDIR");
  EXPECT_EQ(guest->path_call(unlink, "none/"), "ENOENT");
  EXPECT_EQ(guest->path_call(unlink, "file"), "ESUCCESS");
  EXPECT_EQ(guest->path_call(unlink, "file"), "ENOENT");
}

TEST_P(WasiPath, renaming_follows_the_rules_of_the_host) {
  WasiWorld::write(world.in_box("file"), "f");
  WasiWorld::write(world.in_box("other"), "o");
  std::filesystem::create_directories(world.in_box("full/sub"));
  std::filesystem::create_directory(world.in_box("empty"));
  EXPECT_EQ(guest->rename("file", "moved"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world.in_box("moved")), "f");
  EXPECT_EQ(guest->rename("file", "moved"), "ENOENT");
  EXPECT_EQ(guest->rename("moved", "other"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world.in_box("other")), "f");
  EXPECT_EQ(guest->rename("other", "empty"), "EISDIR");
  EXPECT_EQ(guest->rename("empty", "other"), "ENOTDIR");
  EXPECT_EQ(guest->rename("empty", "full"), "ENOTEMPTY");
  EXPECT_EQ(guest->rename("full", "full/sub/x"), "EINVAL");
  EXPECT_EQ(guest->rename("other", "new/"), "ENOTDIR");
  EXPECT_EQ(guest->rename("other/", "new"), "ENOTDIR");
  EXPECT_EQ(guest->rename("none/", "new"), "ENOENT");
  EXPECT_EQ(guest->rename("full", "empty"), "ESUCCESS");
  EXPECT_EQ(guest->rename("empty/", "again/"), "ESUCCESS");
  EXPECT_TRUE(WasiWorld::exists(world.in_box("again/sub")));
}

TEST_P(WasiPath, renaming_moves_a_link_itself) {
  ASSERT_EQ(guest->symlink("nowhere", "link"), "ESUCCESS");
  ASSERT_EQ(guest->rename("link", "moved"), "ESUCCESS");
  EXPECT_TRUE(std::filesystem::is_symlink(world.in_box("moved")));
}

TEST_P(WasiPath, hard_links_share_the_file) {
  WasiWorld::write(world.in_box("file"), "shared");
  std::filesystem::create_directory(world.in_box("dir"));
  EXPECT_EQ(guest->link("file", "dir/twin"), "ESUCCESS");
  EXPECT_EQ(std::filesystem::hard_link_count(world.in_box("file")), 2u);
  EXPECT_EQ(guest->link("file", "dir/twin"), "EEXIST");
  EXPECT_EQ(guest->link("none", "x"), "ENOENT");
  EXPECT_EQ(guest->link("dir", "x"), "EPERM");
  EXPECT_EQ(guest->link("file", "x/"), "ENOENT");
  EXPECT_EQ(guest->link("file", "dir/"), "EEXIST");
  EXPECT_EQ(guest->link("file/", "x"), "ENOTDIR");
  EXPECT_EQ(guest->link("file", "x", 2), "EINVAL");
}

TEST_P(WasiPath, a_hard_link_of_a_link_is_of_the_link_unless_it_is_to_be_followed) {
  WasiWorld::write(world.in_box("file"), "shared");
  ASSERT_EQ(guest->symlink("file", "link"), "ESUCCESS");
  ASSERT_EQ(guest->link("link", "twin"), "ESUCCESS");
  EXPECT_TRUE(std::filesystem::is_symlink(world.in_box("twin")));
  ASSERT_EQ(guest->link("link", "followed", wasi::kLookupFollow), "ESUCCESS");
  EXPECT_FALSE(std::filesystem::is_symlink(world.in_box("followed")));
  EXPECT_EQ(WasiWorld::content(world.in_box("followed")), "shared");
}

TEST_P(WasiPath, links_are_made_and_read) {
  EXPECT_EQ(guest->symlink("some/where", "link"), "ESUCCESS");
  EXPECT_EQ(guest->readlink("link"), "ESUCCESS");
  EXPECT_EQ(guest->data, "some/where");
  EXPECT_EQ(guest->readlink("link", 4), "ESUCCESS");
  EXPECT_EQ(guest->data, "some");
  EXPECT_EQ(guest->readlink("link", 0), "ESUCCESS");
  EXPECT_EQ(guest->data, "");
  EXPECT_EQ(guest->symlink("x", "link"), "EEXIST");
  EXPECT_EQ(guest->symlink("x", "new/"), "ENOENT");
  EXPECT_EQ(guest->symlink("", "new"), "ENOENT");
  WasiWorld::write(world.in_box("file"), "");
  std::filesystem::create_directory(world.in_box("dir"));
  EXPECT_EQ(guest->symlink("x", "file/"), "ENOTDIR");
  EXPECT_EQ(guest->symlink("x", "dir/"), "EEXIST");
  EXPECT_EQ(guest->readlink("file"), "EINVAL");
  EXPECT_EQ(guest->readlink("none"), "ENOENT");
  EXPECT_EQ(guest->readlink("link/"), "ENOTDIR");
  EXPECT_EQ(guest->readlink("dir/"), "EINVAL");
}

TEST_P(WasiPath, file_states_are_of_the_link_or_of_its_target) {
  WasiWorld::write(world.in_box("file"), "12345");
  ASSERT_EQ(guest->symlink("file", "link"), "ESUCCESS");
  ASSERT_EQ(guest->filestat("link"), "ESUCCESS");
  EXPECT_EQ(guest->bytes[guest->stat + 16], 7);
  ASSERT_EQ(guest->filestat("link", wasi::kLookupFollow), "ESUCCESS");
  EXPECT_EQ(guest->bytes[guest->stat + 16], 4);
  EXPECT_EQ(guest->u64(guest->stat + 32), 5u);
  EXPECT_EQ(guest->filestat("link/"), "ENOTDIR");
  EXPECT_EQ(guest->filestat("none"), "ENOENT");
  EXPECT_EQ(guest->filestat("file", 2), "EINVAL");
  ASSERT_EQ(guest->filestat("."), "ESUCCESS");
  EXPECT_EQ(guest->bytes[guest->stat + 16], 3);
}

TEST_P(WasiPath, times_are_set_through_a_path) {
  WasiWorld::write(world.in_box("file"), "");
  ASSERT_EQ(guest->symlink("file", "link"), "ESUCCESS");
  const auto set = [&](std::string_view path, uint32_t lookup, uint64_t mtim, uint32_t flags) {
    return guest->call("path_filestat_set_times",
                       {kBox, lookup, guest->put(path), path.size(), 0, mtim, flags});
  };
  const auto mtim = [&](std::string_view path) {
    EXPECT_EQ(guest->filestat(path), "ESUCCESS");
    return guest->u64(guest->stat + 48);
  };
  EXPECT_EQ(set("file", 0, 1000, wasi::kSetMtim), "ESUCCESS");
  EXPECT_EQ(mtim("file"), 1000u);
  EXPECT_EQ(set("link", wasi::kLookupFollow, 2000, wasi::kSetMtim), "ESUCCESS");
  EXPECT_EQ(mtim("file"), 2000u);
  EXPECT_EQ(set("link", 0, 3000, wasi::kSetMtim), "ESUCCESS");
  EXPECT_EQ(mtim("file"), 2000u);
  EXPECT_EQ(mtim("link"), 3000u);
  EXPECT_EQ(set("file", 0, 0, wasi::kSetMtim | wasi::kSetMtimNow), "EINVAL");
  EXPECT_EQ(set("none", 0, 0, 0), "ENOENT");
}

TEST_P(WasiPath, names_need_not_be_text) {
  const std::string name = "\xff\xfe name\n";
  EXPECT_EQ(guest->create(name), "ESUCCESS");
  EXPECT_TRUE(WasiWorld::exists(world.in_box(name)));
}

TEST_P(WasiPath, deep_paths_resolve_and_climb_back) {
  std::string down, up;
  for (int i = 0; i < 200; ++i) {
    down += "d/";
    up += "../";
  }
  std::filesystem::create_directories(world.in_box(down));
  WasiWorld::write(world.in_box("file"), "top");
  EXPECT_EQ(guest->open(down + up + "file"), "ESUCCESS");
  EXPECT_EQ(guest->open(down + up + "../file"), "EPERM");
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_path_test
