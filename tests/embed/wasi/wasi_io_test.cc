// Reading, writing, positions, sizes, times, flags and rights of descriptors.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_io_test {
namespace {

class WasiIo : public testing::Test {
 protected:
  WasiIo() : guest_(box_config(world_)) {}

  std::string seek(uint32_t fd, int64_t offset, uint32_t whence) {
    const uint32_t at = guest_.alloc(8);
    const std::string error =
        guest_.call("fd_seek", {fd, static_cast<uint64_t>(offset), whence, at});
    if (error == "ESUCCESS") position_ = guest_.u64(at);
    return error;
  }
  std::string pwrite(uint32_t fd, std::string_view text, uint64_t offset) {
    const uint32_t list =
        guest_.put_iovecs({{guest_.put(text), static_cast<uint32_t>(text.size())}});
    return guest_.call("fd_pwrite", {fd, list, 1, offset, guest_.alloc(4)});
  }
  std::string fdstat(uint32_t fd) {
    const uint32_t at = guest_.alloc(24);
    const std::string error = guest_.call("fd_fdstat_get", {fd, at});
    type_ = guest_.bytes[at];
    flags_ = guest_.u16(at + 2);
    base_ = guest_.u64(at + 8);
    inheriting_ = guest_.u64(at + 16);
    return error;
  }

  WasiWorld world_;
  Guest guest_;
  uint64_t position_ = 0;
  uint8_t type_ = 0;
  uint16_t flags_ = 0;
  uint64_t base_ = 0, inheriting_ = 0;
};

TEST_F(WasiIo, what_is_written_is_read_back) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  EXPECT_EQ(fd, 4u);
  ASSERT_EQ(guest_.write(fd, "hello world"), "ESUCCESS");
  EXPECT_EQ(guest_.count, 11u);
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "hello world");
  ASSERT_EQ(seek(fd, 6, 0), "ESUCCESS");
  ASSERT_EQ(guest_.read(fd, 100), "ESUCCESS");
  EXPECT_EQ(guest_.data, "world");
  ASSERT_EQ(guest_.read(fd, 100), "ESUCCESS");
  EXPECT_EQ(guest_.count, 0u);
}

TEST_F(WasiIo, lists_of_buffers_are_scattered_and_gathered_in_order) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  const uint32_t text = guest_.put("abcdef");
  const uint32_t out = guest_.alloc(4);
  const uint32_t list = guest_.put_iovecs({{text + 4, 2}, {0xffffffff, 0}, {text, 3}});
  ASSERT_EQ(guest_.call("fd_write", {fd, list, 3, out}), "ESUCCESS");
  EXPECT_EQ(guest_.u32(out), 5u);
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "efabc");
  const uint32_t to = guest_.alloc(8);
  const uint32_t parts = guest_.put_iovecs({{to + 4, 2}, {to, 2}, {to + 6, 2}});
  ASSERT_EQ(guest_.call("fd_pread", {fd, parts, 3, 0, out}), "ESUCCESS");
  EXPECT_EQ(guest_.u32(out), 5u);
  EXPECT_EQ(guest_.text(to, 2), "ab");
  EXPECT_EQ(guest_.text(to + 4, 3), "efc");
  EXPECT_EQ(guest_.bytes[to + 7], 0xcc);
}

TEST_F(WasiIo, an_empty_list_transfers_nothing) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t out = guest_.alloc(4);
  ASSERT_EQ(guest_.call("fd_write", {guest_.fd, 0, 0, out}), "ESUCCESS");
  EXPECT_EQ(guest_.u32(out), 0u);
  ASSERT_EQ(guest_.call("fd_read", {guest_.fd, 0, 0, out}), "ESUCCESS");
  EXPECT_EQ(guest_.u32(out), 0u);
}

TEST_F(WasiIo, a_list_with_too_many_buffers_transfers_a_part_and_skips_empty_ones) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  constexpr uint32_t kCount = 5000;
  const uint32_t text = guest_.put("x");
  const uint32_t list = guest_.alloc(kCount * 8);
  for (uint32_t i = 0; i < kCount; ++i) {
    wasi::put32(&guest_.bytes[list + i * 8], text);
    wasi::put32(&guest_.bytes[list + i * 8 + 4], i % 2);
  }
  const uint32_t out = guest_.alloc(4);
  ASSERT_EQ(guest_.call("fd_write", {guest_.fd, list, kCount, out}), "ESUCCESS");
  EXPECT_EQ(guest_.u32(out), 1024u);
  // Only empty buffers before the data: that is not the end of the file.
  ASSERT_EQ(seek(guest_.fd, 0, 0), "ESUCCESS");
  for (uint32_t i = 0; i + 1 < kCount; ++i) wasi::put32(&guest_.bytes[list + i * 8 + 4], 0);
  ASSERT_EQ(guest_.call("fd_read", {guest_.fd, list, kCount, out}), "ESUCCESS");
  EXPECT_EQ(guest_.u32(out), 1u);
}

TEST_F(WasiIo, positioned_calls_leave_the_position_alone) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  ASSERT_EQ(guest_.write(fd, "0123456789"), "ESUCCESS");
  ASSERT_EQ(pwrite(fd, "XY", 3), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "012XY56789");
  ASSERT_EQ(seek(fd, 0, 1), "ESUCCESS");
  EXPECT_EQ(position_, 10u);
  EXPECT_EQ(pwrite(fd, "XY", uint64_t{1} << 63), "EINVAL");
  const uint32_t list = guest_.put_iovecs({{guest_.alloc(4), 4}});
  const uint32_t out = guest_.alloc(4);
  EXPECT_EQ(guest_.call("fd_pread", {fd, list, 1, UINT64_MAX, out}), "EINVAL");
}

TEST_F(WasiIo, appending_goes_to_the_end_but_a_positioned_write_where_it_says) {
  WasiWorld::write(world_.in_box("file"), "0123");
  ASSERT_EQ(guest_.create("file", wasi::kFdAppend), "ESUCCESS");
  ASSERT_EQ(guest_.write(guest_.fd, "45"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "012345");
  ASSERT_EQ(pwrite(guest_.fd, "ab", 0), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "ab2345");
  ASSERT_EQ(guest_.write(guest_.fd, "6"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "ab23456");
}

TEST_F(WasiIo, positions_are_set_and_told) {
  WasiWorld::write(world_.in_box("file"), "0123456789");
  ASSERT_EQ(guest_.open("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  ASSERT_EQ(seek(fd, 4, 0), "ESUCCESS");
  EXPECT_EQ(position_, 4u);
  ASSERT_EQ(seek(fd, -3, 1), "ESUCCESS");
  EXPECT_EQ(position_, 1u);
  ASSERT_EQ(seek(fd, -1, 2), "ESUCCESS");
  EXPECT_EQ(position_, 9u);
  const uint32_t at = guest_.alloc(8);
  ASSERT_EQ(guest_.call("fd_tell", {fd, at}), "ESUCCESS");
  EXPECT_EQ(guest_.u64(at), 9u);
  EXPECT_EQ(seek(fd, -1, 0), "EINVAL");
  EXPECT_EQ(seek(fd, 0, 3), "EINVAL");
  EXPECT_EQ(seek(99, 0, 0), "EBADF");
  EXPECT_EQ(seek(kBox, 0, 0), "EISDIR");
}

TEST_F(WasiIo, file_operations_on_a_directory_say_what_it_is) {
  EXPECT_EQ(guest_.read(kBox, 1), "EISDIR");
  EXPECT_EQ(guest_.write(kBox, "x"), "EISDIR");
  EXPECT_EQ(pwrite(kBox, "x", 0), "EISDIR");
  EXPECT_EQ(guest_.call("fd_filestat_set_size", {kBox, 0}), "EISDIR");
  EXPECT_EQ(guest_.call("fd_allocate", {kBox, 0, 1}), "EISDIR");
  EXPECT_EQ(guest_.call("fd_sync", {kBox}), "ESUCCESS");
  EXPECT_EQ(guest_.call("fd_datasync", {kBox}), "ESUCCESS");
}

TEST_F(WasiIo, closed_descriptors_are_bad_for_everything) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  ASSERT_EQ(guest_.call("fd_close", {fd}), "ESUCCESS");
  const uint32_t out = guest_.alloc(64);
  for (const uint64_t bad : {uint64_t{fd}, uint64_t{1000}, uint64_t{0xffffffff}}) {
    EXPECT_EQ(guest_.call("fd_close", {bad}), "EBADF");
    EXPECT_EQ(guest_.read(static_cast<uint32_t>(bad), 1), "EBADF");
    EXPECT_EQ(guest_.call("fd_sync", {bad}), "EBADF");
    EXPECT_EQ(guest_.call("fd_datasync", {bad}), "EBADF");
    EXPECT_EQ(guest_.call("fd_fdstat_get", {bad, out}), "EBADF");
    EXPECT_EQ(guest_.call("fd_filestat_get", {bad, out}), "EBADF");
    EXPECT_EQ(guest_.call("fd_advise", {bad, 0, 0, 0}), "EBADF");
    EXPECT_EQ(guest_.call("fd_renumber", {bad, kBox}), "EBADF");
    EXPECT_EQ(guest_.call("fd_renumber", {kBox, bad}), "EBADF");
    EXPECT_EQ(guest_.call("fd_prestat_get", {bad, out}), "EBADF");
    EXPECT_EQ(guest_.filestat("file", 0, static_cast<uint32_t>(bad)), "EBADF");
  }
}

TEST_F(WasiIo, the_lowest_free_descriptor_from_three_on_is_given) {
  ASSERT_EQ(guest_.create("a"), "ESUCCESS");
  EXPECT_EQ(guest_.fd, 4u);
  ASSERT_EQ(guest_.create("b"), "ESUCCESS");
  EXPECT_EQ(guest_.fd, 5u);
  EXPECT_EQ(guest_.call("fd_close", {0}), "ESUCCESS");
  EXPECT_EQ(guest_.call("fd_close", {4}), "ESUCCESS");
  ASSERT_EQ(guest_.create("c"), "ESUCCESS");
  EXPECT_EQ(guest_.fd, 4u);
  for (uint32_t expected = 6; expected < 100; ++expected) {
    guest_.release_all();
    ASSERT_EQ(guest_.create("d"), "ESUCCESS");
    ASSERT_EQ(guest_.fd, expected);
  }
}

TEST_F(WasiIo, running_out_of_descriptors_is_an_error_of_the_guest) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  std::string error = "ESUCCESS";
  for (int i = 0; i < 100 && error == "ESUCCESS"; ++i) {
    guest_.release_all();
    error = guest_.create("file");
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(error, "EMFILE");
}

TEST_F(WasiIo, opened_descriptors_do_not_survive_an_exec) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  int found = 0;
  for (int host = 3; host < 256; ++host) {
    char path[4096] = {};
    const std::string link = std::string("/proc/self/fd/").append(std::to_string(host));
    if (::readlink(link.c_str(), path, sizeof path - 1) < 0) continue;
    if (std::string_view(path).substr(0, world_.root().size()) != world_.root()) continue;
    ++found;
    EXPECT_NE(::fcntl(host, F_GETFD) & FD_CLOEXEC, 0) << path;
  }
  EXPECT_EQ(found, 2);  // the box and the file
}

TEST_F(WasiIo, renumbering_moves_over_what_was_there) {
  ASSERT_EQ(guest_.create("a"), "ESUCCESS");
  const uint32_t a = guest_.fd;
  ASSERT_EQ(guest_.create("b"), "ESUCCESS");
  const uint32_t b = guest_.fd;
  EXPECT_EQ(guest_.call("fd_renumber", {a, a}), "ESUCCESS");
  ASSERT_EQ(guest_.call("fd_renumber", {a, b}), "ESUCCESS");
  EXPECT_EQ(guest_.write(a, "x"), "EBADF");
  ASSERT_EQ(guest_.write(b, "into a"), "ESUCCESS");
  EXPECT_EQ(WasiWorld::content(world_.in_box("a")), "into a");
  EXPECT_EQ(WasiWorld::content(world_.in_box("b")), "");
}

TEST_F(WasiIo, sizes_are_set_and_space_is_allocated) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  ASSERT_EQ(guest_.call("fd_filestat_set_size", {fd, 100}), "ESUCCESS");
  EXPECT_EQ(std::filesystem::file_size(world_.in_box("file")), 100u);
  ASSERT_EQ(guest_.call("fd_allocate", {fd, 50, 100}), "ESUCCESS");
  EXPECT_EQ(std::filesystem::file_size(world_.in_box("file")), 150u);
  EXPECT_EQ(guest_.call("fd_allocate", {fd, 0, 0}), "EINVAL");
  EXPECT_EQ(guest_.call("fd_allocate", {fd, UINT64_MAX, 1}), "EINVAL");
  EXPECT_EQ(guest_.call("fd_filestat_set_size", {fd, UINT64_MAX}), "EINVAL");
  EXPECT_EQ(guest_.call("fd_sync", {fd}), "ESUCCESS");
  EXPECT_EQ(guest_.call("fd_datasync", {fd}), "ESUCCESS");
  for (uint32_t advice = 0; advice < 6; ++advice) {
    EXPECT_EQ(guest_.call("fd_advise", {fd, 0, 0, advice}), "ESUCCESS");
  }
  EXPECT_EQ(guest_.call("fd_advise", {fd, 0, 0, 6}), "EINVAL");
  EXPECT_EQ(guest_.call("fd_advise", {fd, UINT64_MAX, 0, 0}), "EINVAL");
}

TEST_F(WasiIo, a_filestat_has_the_documented_layout) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  ASSERT_EQ(guest_.write(guest_.fd, "12345"), "ESUCCESS");
  std::filesystem::create_hard_link(world_.in_box("file"), world_.in_box("twin"));
  ASSERT_EQ(guest_.call("fd_filestat_set_times", {guest_.fd, 1'000'000'001, 2'000'000'002, 5}),
            "ESUCCESS");
  const uint32_t at = guest_.alloc(65) + 1;
  ASSERT_EQ(guest_.call("fd_filestat_get", {guest_.fd, at}), "ESUCCESS");
  struct stat st;
  ASSERT_EQ(::stat(world_.in_box("file").c_str(), &st), 0);
  EXPECT_EQ(guest_.u64(at), st.st_dev);
  EXPECT_EQ(guest_.u64(at + 8), st.st_ino);
  EXPECT_EQ(guest_.bytes[at + 16], 4);  // a regular file
  for (uint32_t pad = 17; pad < 24; ++pad) EXPECT_EQ(guest_.bytes[at + pad], 0);
  EXPECT_EQ(guest_.u64(at + 24), 2u);
  EXPECT_EQ(guest_.u64(at + 32), 5u);
  EXPECT_EQ(guest_.u64(at + 40), 1'000'000'001u);
  EXPECT_EQ(guest_.u64(at + 48), 2'000'000'002u);
  EXPECT_EQ(guest_.u64(at + 56), static_cast<uint64_t>(st.st_ctim.tv_sec) * 1'000'000'000 +
                                     static_cast<uint64_t>(st.st_ctim.tv_nsec));
}

TEST_F(WasiIo, times_are_set_left_or_made_now_by_their_flags) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  const auto set = [&](uint64_t atim, uint64_t mtim, uint32_t flags) {
    return guest_.call("fd_filestat_set_times", {fd, atim, mtim, flags});
  };
  ASSERT_EQ(set(1000, 2000, wasi::kSetAtim | wasi::kSetMtim), "ESUCCESS");
  ASSERT_EQ(set(7, 3000, wasi::kSetMtim), "ESUCCESS");
  const uint32_t at = guest_.alloc(64);
  ASSERT_EQ(guest_.call("fd_filestat_get", {fd, at}), "ESUCCESS");
  EXPECT_EQ(guest_.u64(at + 40), 1000u);
  EXPECT_EQ(guest_.u64(at + 48), 3000u);
  ASSERT_EQ(set(0, 0, wasi::kSetAtimNow | wasi::kSetMtimNow), "ESUCCESS");
  ASSERT_EQ(guest_.call("fd_filestat_get", {fd, at}), "ESUCCESS");
  EXPECT_GT(guest_.u64(at + 40), 1'000'000'000'000'000'000u);  // this century
  EXPECT_EQ(set(0, 0, wasi::kSetAtim | wasi::kSetAtimNow), "EINVAL");
  EXPECT_EQ(set(0, 0, wasi::kSetMtim | wasi::kSetMtimNow), "EINVAL");
  EXPECT_EQ(set(0, 0, 16), "EINVAL");
}

TEST_F(WasiIo, an_fdstat_has_the_documented_layout) {
  ASSERT_EQ(guest_.create("file", wasi::kFdAppend | wasi::kFdSyncFlag), "ESUCCESS");
  const uint32_t at = guest_.alloc(24);
  ASSERT_EQ(guest_.call("fd_fdstat_get", {guest_.fd, at}), "ESUCCESS");
  EXPECT_EQ(guest_.bytes[at], 4);
  EXPECT_EQ(guest_.bytes[at + 1], 0);
  EXPECT_EQ(guest_.u16(at + 2), wasi::kFdAppend | wasi::kFdSyncFlag);
  EXPECT_EQ(guest_.u32(at + 4), 0u);
  EXPECT_EQ(guest_.u64(at + 8), wasi::kFileRights);
  EXPECT_EQ(guest_.u64(at + 16), 0u);
  ASSERT_EQ(fdstat(kBox), "ESUCCESS");
  EXPECT_EQ(type_, 3);
  EXPECT_EQ(flags_, 0);
  EXPECT_EQ(base_, wasi::kDirectoryRights);
  EXPECT_EQ(inheriting_, wasi::kAllRights);
}

TEST_F(WasiIo, append_and_nonblock_can_be_changed_and_synchronisation_cannot) {
  ASSERT_EQ(guest_.create("file", wasi::kFdDsync), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  const auto set = [&](uint32_t flags) { return guest_.call("fd_fdstat_set_flags", {fd, flags}); };
  ASSERT_EQ(set(wasi::kFdDsync | wasi::kFdAppend | wasi::kFdNonblock), "ESUCCESS");
  ASSERT_EQ(fdstat(fd), "ESUCCESS");
  EXPECT_EQ(flags_, wasi::kFdDsync | wasi::kFdAppend | wasi::kFdNonblock);
  ASSERT_EQ(set(wasi::kFdDsync), "ESUCCESS");
  ASSERT_EQ(fdstat(fd), "ESUCCESS");
  EXPECT_EQ(flags_, wasi::kFdDsync);
  EXPECT_EQ(set(0), "ENOTSUP");
  EXPECT_EQ(set(wasi::kFdSyncFlag), "ENOTSUP");
  EXPECT_EQ(set(1 << 5), "EINVAL");
}

TEST_F(WasiIo, rights_can_only_be_given_up) {
  ASSERT_EQ(guest_.create("file"), "ESUCCESS");
  const uint32_t fd = guest_.fd;
  ASSERT_EQ(guest_.write(fd, "data"), "ESUCCESS");
  const uint64_t kept = wasi::kFdRead | wasi::kFdTell;
  ASSERT_EQ(guest_.call("fd_fdstat_set_rights", {fd, kept, 0}), "ESUCCESS");
  ASSERT_EQ(fdstat(fd), "ESUCCESS");
  EXPECT_EQ(base_, kept);
  EXPECT_EQ(guest_.call("fd_fdstat_set_rights", {fd, kept | wasi::kFdWrite, 0}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_fdstat_set_rights", {fd, kept, 1}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.write(fd, "x"), "ENOTCAPABLE");
  EXPECT_EQ(pwrite(fd, "x", 0), "ENOTCAPABLE");
  EXPECT_EQ(seek(fd, 0, 0), "ENOTCAPABLE");
  EXPECT_EQ(seek(fd, 0, 1), "ESUCCESS");
  EXPECT_EQ(guest_.read(fd, 1), "ESUCCESS");
  const uint32_t at = guest_.alloc(64);
  EXPECT_EQ(guest_.call("fd_filestat_get", {fd, at}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_filestat_set_size", {fd, 0}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_filestat_set_times", {fd, 0, 0, 0}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_sync", {fd}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_datasync", {fd}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_advise", {fd, 0, 0, 0}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_allocate", {fd, 0, 1}), "ENOTCAPABLE");
  EXPECT_EQ(guest_.call("fd_fdstat_set_flags", {fd, 0}), "ENOTCAPABLE");
  EXPECT_EQ(WasiWorld::content(world_.in_box("file")), "data");
}

// The standard streams.

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  int ends[2] = {-1, -1};
};

TEST(WasiStdio, streams_are_the_descriptors_given_and_stay_open_on_the_host) {
  Pipe in, out;
  ASSERT_EQ(::write(in.ends[1], "question", 8), 8);
  WasiConfig config;
  config.stdin_fd = in.ends[0];
  config.stdout_fd = out.ends[1];
  config.stderr_fd = -1;
  {
    Guest guest(config);
    ASSERT_EQ(guest.read(0, 100), "ESUCCESS");
    EXPECT_EQ(guest.data, "question");
    EXPECT_EQ(guest.write(0, "x"), "ENOTCAPABLE");
    ASSERT_EQ(guest.write(1, "answer"), "ESUCCESS");
    EXPECT_EQ(guest.read(1, 1), "ENOTCAPABLE");
    EXPECT_EQ(guest.write(2, "x"), "EBADF");
    const uint32_t at = guest.alloc(64);
    EXPECT_EQ(guest.call("fd_tell", {0, at}), "ESPIPE");
    EXPECT_EQ(guest.call("fd_close", {1}), "ESUCCESS");
    EXPECT_EQ(guest.write(1, "x"), "EBADF");
  }
  char text[16] = {};
  EXPECT_EQ(::read(out.ends[0], text, sizeof text), 6);
  EXPECT_STREQ(text, "answer");
  for (const int fd : {in.ends[0], out.ends[1]}) EXPECT_GE(::fcntl(fd, F_GETFD), 0);
}

TEST(WasiStdio, owned_streams_are_closed_with_the_guest) {
  Pipe in, out;
  WasiConfig config;
  config.stdin_fd = in.ends[0];
  config.stdout_fd = out.ends[1];
  config.stderr_fd = -1;
  config.owns_stdio = true;
  {
    Guest guest(config);
    EXPECT_EQ(guest.call("fd_close", {1}), "ESUCCESS");
    EXPECT_LT(::fcntl(out.ends[1], F_GETFD), 0);
    EXPECT_GE(::fcntl(in.ends[0], F_GETFD), 0);
  }
  EXPECT_LT(::fcntl(in.ends[0], F_GETFD), 0);
  in.ends[0] = out.ends[1] = -1;
}

TEST(WasiStdio, a_guest_can_wait_less_without_changing_the_streams_of_the_host) {
  Pipe in;
  WasiConfig config;
  config.stdin_fd = in.ends[0];
  Guest guest(config);
  ASSERT_EQ(guest.call("fd_fdstat_set_flags", {0, wasi::kFdNonblock}), "ESUCCESS");
  EXPECT_EQ(::fcntl(in.ends[0], F_GETFL) & O_NONBLOCK, 0);
  const uint32_t at = guest.alloc(24);
  ASSERT_EQ(guest.call("fd_fdstat_get", {0, at}), "ESUCCESS");
  EXPECT_EQ(guest.u16(at + 2), wasi::kFdNonblock);
  EXPECT_EQ(guest.read(0, 10), "EAGAIN");
  ASSERT_EQ(::write(in.ends[1], "now", 3), 3);
  EXPECT_EQ(guest.read(0, 10), "ESUCCESS");
  EXPECT_EQ(guest.data, "now");
  EXPECT_EQ(guest.call("fd_fdstat_set_flags", {0, wasi::kFdAppend}), "ENOTSUP");
}

TEST(WasiStdio, a_stream_that_does_not_block_says_again) {
  Pipe in;
  ASSERT_EQ(::fcntl(in.ends[0], F_SETFL, O_NONBLOCK), 0);
  WasiConfig config;
  config.stdin_fd = in.ends[0];
  Guest guest(config);
  EXPECT_EQ(guest.read(0, 10), "EAGAIN");
}

TEST(WasiStdio, writing_to_a_closed_pipe_is_an_error_and_no_signal) {
  Pipe out;
  ::close(out.ends[0]);
  out.ends[0] = -1;
  struct sigaction default_action = {}, before = {};
  default_action.sa_handler = SIG_DFL;
  ASSERT_EQ(::sigaction(SIGPIPE, &default_action, &before), 0);
  WasiConfig config;
  config.stdout_fd = out.ends[1];
  Guest guest(config);
  EXPECT_EQ(guest.write(1, "x"), "EPIPE");  // a SIGPIPE would end the test program
  sigset_t pending, mask;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGPIPE), 0);
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST(WasiStdio, types_tell_a_terminal_from_other_things) {
  const int terminal = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets), 0);
  WasiConfig config;
  config.stdin_fd = terminal;
  config.stdout_fd = null;
  config.stderr_fd = sockets[0];
  Guest guest(config);
  const uint32_t at = guest.alloc(24);
  if (terminal >= 0) {
    ASSERT_EQ(guest.call("fd_fdstat_get", {0, at}), "ESUCCESS");
    EXPECT_EQ(guest.bytes[at], 2);
    EXPECT_EQ(guest.u64(at + 8) & (wasi::kFdSeek | wasi::kFdTell), 0u);
  }
  ASSERT_EQ(guest.call("fd_fdstat_get", {1, at}), "ESUCCESS");
  EXPECT_EQ(guest.bytes[at], 2);
  EXPECT_NE(guest.u64(at + 8) & (wasi::kFdSeek | wasi::kFdTell), 0u);
  ASSERT_EQ(guest.call("fd_fdstat_get", {2, at}), "ESUCCESS");
  EXPECT_EQ(guest.bytes[at], 5);
  for (const int fd : {terminal, null, sockets[0], sockets[1]}) ::close(fd);
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_io_test
