// There is no way out of a preopened directory, with both ways to resolve paths.
#include <atomic>
#include <thread>

#include "embed/wasi/resolve.h"
#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_escape_test {
namespace {

// A box into which the host has put every kind of link that leads out.
class WasiEscape : public WasiResolved {
 protected:
  void SetUp() override {
    WasiResolved::SetUp();
    std::filesystem::create_directories(world.in_box("sub/deep"));
    WasiWorld::write(world.in_box("inside"), "inside");
    link("/", "to_root");
    link(world.root() + "/outside", "absolute");
    link("../outside", "relative");
    link("../outside/secret", "file");
    link("file", "chain1");
    link("sub/../chain1", "chain2");
    link("../../outside", "sub/up");
    link("sub/up/secret", "via_sub");
    link("..", "dotdot");
    link("dotdot/outside", "via_dotdot");
    link("../outside/new", "dangling");
    link("/proc/self/root", "magic");
    link("/proc/self/fd", "magic_fds");
    before_ = world.picture();
  }
  void link(const std::string& text, const std::string& name) {
    std::filesystem::create_symlink(text, world.in_box(name));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(WasiWorld::content(world.outside("secret")), "secret");
    EXPECT_FALSE(WasiWorld::exists(world.outside("new")));
  }

  // Returns paths to existing files outside.
  std::vector<std::string> ways_out() const {
    return {world.outside("secret"),
            "/etc/passwd",
            "/",
            "..",
            "../",
            "../outside/secret",
            "sub/../../outside/secret",
            "sub/deep/../../../outside/secret",
            "./../outside/secret",
            "to_root/etc/passwd",
            "to_root/",
            "absolute/secret",
            "relative/secret",
            "relative/",
            "relative/../outside/secret",
            "file",
            "chain1",
            "chain2",
            "sub/up/secret",
            "via_sub",
            "dotdot/outside/secret",
            "dotdot/",
            "via_dotdot/secret",
            "sub/deep/../up/secret",
            "magic/etc/passwd",
            "magic_fds/0"};
  }

  std::string before_;
};
INSTANTIATE_TEST_SUITE_P(resolver, WasiEscape, both_resolvers(), resolver_name);

TEST_P(WasiEscape, nothing_outside_can_be_opened) {
  for (const std::string& path : ways_out()) {
    EXPECT_EQ(guest->open(path), "EPERM") << path;
    Guest::OpenOptions directory;
    directory.oflags = wasi::kOpenDirectory;
    EXPECT_EQ(guest->open(path, directory), "EPERM") << path;
    EXPECT_NE(guest->create(path), "ESUCCESS") << path;
    Guest::OpenOptions truncate;
    truncate.oflags = wasi::kOpenTrunc;
    EXPECT_EQ(guest->open(path, truncate), "EPERM") << path;
  }
  EXPECT_EQ(world.picture(), before_);
}

TEST_P(WasiEscape, nothing_outside_can_be_asked_about) {
  for (const std::string& path : ways_out()) {
    EXPECT_EQ(guest->filestat(path, wasi::kLookupFollow), "EPERM") << path;
    EXPECT_EQ(guest->call("path_filestat_set_times",
                          {kBox, wasi::kLookupFollow, guest->put(path), path.size(), 1, 1, 5}),
              "EPERM")
        << path;
  }
  // Without following, the call stats the final link itself; with a trailing slash it follows the
  // link.
  EXPECT_EQ(guest->filestat("relative"), "ESUCCESS");
  EXPECT_EQ(guest->bytes[guest->stat + 16], 7);
  EXPECT_EQ(guest->filestat("relative/"), "EPERM");
  EXPECT_EQ(guest->filestat("relative/secret"), "EPERM");
  EXPECT_EQ(guest->filestat("sub/../.."), "EPERM");
}

TEST_P(WasiEscape, nothing_outside_can_be_made_or_removed) {
  for (const char* prefix : {"../outside/", "absolute/", "relative/", "to_root/tmp/", "sub/up/",
                             "via_dotdot/", "dotdot/outside/", "/tmp/", "sub/../../outside/"}) {
    const std::string name = std::string(prefix) + "new";
    const std::string secret = std::string(prefix) + "secret";
    EXPECT_EQ(guest->create(name), "EPERM") << name;
    EXPECT_EQ(guest->path_call("path_create_directory", name), "EPERM") << name;
    EXPECT_EQ(guest->path_call("path_remove_directory", name), "EPERM") << name;
    EXPECT_EQ(guest->path_call("path_unlink_file", secret), "EPERM") << name;
    EXPECT_EQ(guest->symlink("x", name), "EPERM") << name;
    EXPECT_EQ(guest->readlink(secret), "EPERM") << name;
    EXPECT_EQ(guest->rename("inside", name), "EPERM") << name;
    EXPECT_EQ(guest->rename(secret, "stolen"), "EPERM") << name;
    EXPECT_EQ(guest->link("inside", name), "EPERM") << name;
    EXPECT_EQ(guest->link(secret, "stolen"), "EPERM") << name;
    EXPECT_EQ(guest->link(secret, "stolen", wasi::kLookupFollow), "EPERM") << name;
  }
  for (const char* path : {"..", "../", "sub/../..", "../box", "dotdot/box"}) {
    EXPECT_EQ(guest->path_call("path_create_directory", path), "EPERM") << path;
    EXPECT_EQ(guest->path_call("path_remove_directory", path), "EPERM") << path;
    EXPECT_EQ(guest->path_call("path_unlink_file", path), "EPERM") << path;
    EXPECT_EQ(guest->rename(path, "x"), "EPERM") << path;
    EXPECT_EQ(guest->rename("sub", path), "EPERM") << path;
  }
  EXPECT_EQ(world.picture(), before_);
}

TEST_P(WasiEscape, creation_through_a_dangling_link_does_not_leave) {
  EXPECT_EQ(guest->create("dangling"), "EPERM");
  EXPECT_EQ(guest->path_call("path_create_directory", "dangling"), "EEXIST");
  EXPECT_EQ(guest->path_call("path_create_directory", "dangling/"), "EEXIST");
  EXPECT_EQ(guest->symlink("x", "dangling"), "EEXIST");
  EXPECT_EQ(guest->link("inside", "dangling"), "EEXIST");
  EXPECT_EQ(world.picture(), before_);
}

TEST_P(WasiEscape, a_hard_link_takes_the_link_and_never_the_file_outside) {
  EXPECT_EQ(guest->link("file", "stolen", wasi::kLookupFollow), "EPERM");
  EXPECT_EQ(guest->link("chain2", "stolen", wasi::kLookupFollow), "EPERM");
  EXPECT_FALSE(WasiWorld::exists(world.in_box("stolen")));
  EXPECT_EQ(guest->link("file", "stolen"), "ESUCCESS");
  EXPECT_TRUE(std::filesystem::is_symlink(world.in_box("stolen")));
  EXPECT_EQ(guest->open("stolen"), "EPERM");
  EXPECT_EQ(std::filesystem::hard_link_count(world.outside("secret")), 1u);
}

TEST_P(WasiEscape, renaming_onto_a_link_replaces_the_link) {
  EXPECT_EQ(guest->rename("inside", "file"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world.in_box("file")), "inside");
  EXPECT_EQ(guest->path_call("path_unlink_file", "relative"), "ESUCCESS");
  EXPECT_TRUE(WasiWorld::exists(world.outside("secret")));
}

TEST_P(WasiEscape, a_guest_cannot_make_a_link_that_leads_out) {
  for (const char* text : {"/", "/etc", "..", "../x", "./..", "a/../..", "a/../../x", "//x"}) {
    EXPECT_EQ(guest->symlink(text, "new"), "EPERM") << text;
  }
  EXPECT_EQ(guest->symlink("../../x", "sub/new"), "EPERM");
  EXPECT_EQ(guest->symlink("../../../x", "sub/deep/new"), "EPERM");
  EXPECT_EQ(guest->symlink("../inside", "sub/new"), "ESUCCESS");
  EXPECT_EQ(guest->symlink("../../inside", "sub/deep/new"), "ESUCCESS");
  EXPECT_EQ(guest->open("sub/deep/new"), "ESUCCESS");
  EXPECT_EQ(guest->symlink("a/../b/..", "stays"), "ESUCCESS");
}

TEST_P(WasiEscape, depth_is_counted_where_the_link_really_is) {
  // "here" leads back to the top, so "here/here/x" is not two levels deep.
  ASSERT_EQ(guest->symlink(".", "here"), "ESUCCESS");
  EXPECT_EQ(guest->symlink("../../outside", "here/here/x"), "EPERM");
  ASSERT_EQ(guest->symlink("sub/deep", "down"), "ESUCCESS");
  EXPECT_EQ(guest->symlink("../../inside", "down/x"), "ESUCCESS");
}

TEST_P(WasiEscape, a_link_that_is_moved_to_where_it_leads_out_is_refused_when_used) {
  ASSERT_EQ(guest->symlink("../../outside/secret", "sub/deep/l"), "ESUCCESS");
  ASSERT_EQ(guest->rename("sub/deep/l", "l"), "ESUCCESS");
  EXPECT_EQ(guest->open("l"), "EPERM");
  ASSERT_EQ(guest->symlink("..", "sub/deep/u"), "ESUCCESS");
  ASSERT_EQ(guest->rename("sub/deep/u", "u"), "ESUCCESS");
  EXPECT_EQ(guest->open("u/outside/secret"), "EPERM");
}

TEST_P(WasiEscape, a_directory_descriptor_cannot_be_climbed_out_of) {
  Guest::OpenOptions o;
  o.oflags = wasi::kOpenDirectory;
  o.base = wasi::kDirectoryRights;
  o.inheriting = wasi::kAllRights;
  ASSERT_EQ(guest->open("sub/deep", o), "ESUCCESS");
  Guest::OpenOptions in;
  in.dir = guest->fd;
  EXPECT_EQ(guest->open("../../inside", in), "EPERM");
  EXPECT_EQ(guest->open("..", in), "EPERM");
  // ".." is not reachable even after its directory was moved.
  ASSERT_EQ(guest->rename("sub/deep", "deep"), "ESUCCESS");
  EXPECT_EQ(guest->open("..", in), "EPERM");
  EXPECT_EQ(guest->open("../inside", in), "EPERM");
}

TEST_P(WasiEscape, another_preopen_is_a_world_of_its_own) {
  WasiConfig config = box_config(world, GetParam());
  config.preopens = {{world.in_box("sub"), "/sub"}, {world.in_box("sub/deep"), "/deep"}};
  Guest two(std::move(config));
  EXPECT_EQ(two.open("../inside"), "EPERM");
  Guest::OpenOptions deep;
  deep.dir = 4;
  deep.oflags = wasi::kOpenCreat;
  ASSERT_EQ(two.open("x", deep), "ESUCCESS");
  EXPECT_EQ(two.open("deep/x"), "ESUCCESS");
  EXPECT_EQ(two.open("../deep/x", deep), "EPERM");
  const uint32_t x = two.put("x");
  EXPECT_EQ(two.call("path_rename", {4, x, 1, 3, x, 1}), "ESUCCESS");
  EXPECT_TRUE(WasiWorld::exists(world.in_box("sub/x")));
}

// Swaps two names continuously while it exists.
class Swapper {
 public:
  Swapper(std::string a, std::string b)
      : thread_([this, a = std::move(a), b = std::move(b)] {
          while (!stop_.load(std::memory_order_relaxed)) {
            ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
          }
        }) {}
  ~Swapper() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Another thread swaps a directory for a link to the outside while the guest passes through it.
// Whatever the timing, the guest gets the inside or an error.
TEST_P(WasiEscape, swapping_a_directory_for_a_link_wins_nothing) {
  std::filesystem::create_directory(world.in_box("swap"));
  WasiWorld::write(world.in_box("swap/secret"), "inside");
  link("../outside", "evil");
  int inside = 0;
  const Swapper swapper(world.in_box("swap"), world.in_box("evil"));
  for (int i = 0; i < 2000; ++i) {
    guest->release_all();
    if (guest->open("swap/secret") == "ESUCCESS") {
      EXPECT_EQ(guest->read(guest->fd, 10), "ESUCCESS");
      EXPECT_EQ(guest->data, "inside");
      EXPECT_EQ(guest->call("fd_close", {guest->fd}), "ESUCCESS");
      ++inside;
    }
    if (guest->create("swap/new") == "ESUCCESS") guest->call("fd_close", {guest->fd});
    guest->path_call("path_unlink_file", "swap/new");
    guest->link("swap/secret", "copy", wasi::kLookupFollow);
    guest->path_call("path_unlink_file", "copy");
  }
  EXPECT_GT(inside, 0);
}

// The same for the last component, which is opened and not only passed through.
TEST_P(WasiEscape, swapping_a_file_for_a_link_wins_nothing) {
  WasiWorld::write(world.in_box("swap"), "inside");
  link("../outside/secret", "evil");
  int inside = 0;
  const Swapper swapper(world.in_box("swap"), world.in_box("evil"));
  for (int i = 0; i < 10'000; ++i) {
    guest->release_all();
    Guest::OpenOptions o;
    o.lookup = i % 2;
    if (guest->open("swap", o) != "ESUCCESS") continue;
    ASSERT_EQ(guest->read(guest->fd, 10), "ESUCCESS");
    ASSERT_EQ(guest->data, "inside");
    ASSERT_EQ(guest->call("fd_close", {guest->fd}), "ESUCCESS");
    ++inside;
  }
  EXPECT_GT(inside, 0);
}

TEST(WasiLinkText, escapes_are_seen_as_written) {
  using wasi::link_text_escapes;
  EXPECT_TRUE(link_text_escapes("/", 5));
  EXPECT_TRUE(link_text_escapes("..", 0));
  EXPECT_FALSE(link_text_escapes("..", 1));
  EXPECT_TRUE(link_text_escapes("../..", 1));
  EXPECT_TRUE(link_text_escapes("a/../../", 0));
  EXPECT_FALSE(link_text_escapes("a/..", 0));
  EXPECT_FALSE(link_text_escapes(".//./a", 0));
  EXPECT_FALSE(link_text_escapes("...", 0));
  EXPECT_FALSE(link_text_escapes("..a/b", 0));
  EXPECT_TRUE(link_text_escapes("a/../..b/../../c", 0));
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_escape_test
