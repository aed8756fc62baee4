// The functions that need no files: arguments, environment, clocks, randomness, exit, and the
// function table.
#include <cerrno>
#include <set>

#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_args_test {
namespace {

class FixedSystem : public WasiSystem {
 public:
  int clock_resolution(uint32_t clock, uint64_t* ns) noexcept override {
    if (clock > 3) return EINVAL;
    *ns = 1000 + clock;
    return 0;
  }
  int clock_time(uint32_t clock, uint64_t* ns) noexcept override {
    if (clock > 3) return EINVAL;
    *ns = 0x1122334455667788u + clock;
    return 0;
  }
  int random(std::span<uint8_t> out) noexcept override {
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(++drawn);
    return 0;
  }
  int wait(std::span<pollfd>, int64_t) noexcept override { return ENOSYS; }
  uint64_t drawn = 0;
};

WasiConfig plain_config() {
  WasiConfig config;
  config.args = {"prog", "first", ""};
  config.env = {"HOME=/", "EMPTY="};
  return config;
}

TEST(WasiArgs, arguments_are_laid_out_with_their_nuls) {
  Guest guest(plain_config());
  const uint32_t sizes = guest.alloc(8);
  ASSERT_EQ(guest.call("args_sizes_get", {sizes, sizes + 4}), "ESUCCESS");
  EXPECT_EQ(guest.u32(sizes), 3u);
  ASSERT_EQ(guest.u32(sizes + 4), 5u + 6u + 1u);
  const uint32_t table = guest.alloc(12);
  const uint32_t buffer = guest.alloc(12);
  ASSERT_EQ(guest.call("args_get", {table, buffer}), "ESUCCESS");
  EXPECT_EQ(guest.text(buffer, 12), std::string("prog\0first\0\0", 12));
  EXPECT_EQ(guest.u32(table), buffer);
  EXPECT_EQ(guest.u32(table + 4), buffer + 5);
  EXPECT_EQ(guest.u32(table + 8), buffer + 11);
  EXPECT_EQ(guest.bytes[buffer + 12], 0xcc);
}

TEST(WasiArgs, environment_is_laid_out_like_arguments) {
  Guest guest(plain_config());
  const uint32_t sizes = guest.alloc(8);
  ASSERT_EQ(guest.call("environ_sizes_get", {sizes, sizes + 4}), "ESUCCESS");
  EXPECT_EQ(guest.u32(sizes), 2u);
  ASSERT_EQ(guest.u32(sizes + 4), 7u + 7u);
  const uint32_t table = guest.alloc(8);
  const uint32_t buffer = guest.alloc(14);
  ASSERT_EQ(guest.call("environ_get", {table, buffer}), "ESUCCESS");
  EXPECT_EQ(guest.text(buffer, 14), std::string("HOME=/\0EMPTY=\0", 14));
}

TEST(WasiArgs, no_arguments_need_no_memory) {
  Guest guest(WasiConfig{}, 8);
  EXPECT_EQ(guest.call("args_sizes_get", {0, 4}), "ESUCCESS");
  EXPECT_EQ(guest.u64(0), 0u);
  EXPECT_EQ(guest.call("args_get", {8, 8}), "ESUCCESS");
}

TEST(WasiArgs, bad_configurations_are_refused) {
  WasiConfig nul = plain_config();
  nul.args.push_back(std::string("a\0b", 3));
  EXPECT_FALSE(Wasi::create(nul).ok());
  for (const char* entry : {"NOVALUE", "=x", ""}) {
    WasiConfig env = plain_config();
    env.env.push_back(entry);
    EXPECT_FALSE(Wasi::create(env).ok()) << entry;
  }
  WasiConfig missing = plain_config();
  missing.preopens.push_back({"/does/not/exist", "/"});
  const auto made = Wasi::create(missing);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kIo);
  EXPECT_NE(made.error().message.find("/does/not/exist"), std::string::npos);
  WasiConfig unnamed = plain_config();
  unnamed.preopens.push_back({"/", ""});
  EXPECT_FALSE(Wasi::create(unnamed).ok());
  WasiConfig file = plain_config();
  file.preopens.push_back({"/proc/self/exe", "/"});
  EXPECT_FALSE(Wasi::create(file).ok());
}

TEST(WasiClock, times_come_from_the_system_given) {
  FixedSystem system;
  WasiConfig config;
  config.system = &system;
  Guest guest(config);
  const uint32_t at = guest.alloc(9) + 1;  // unaligned
  for (uint32_t clock = 0; clock < 4; ++clock) {
    ASSERT_EQ(guest.call("clock_time_get", {clock, 0, at}), "ESUCCESS");
    EXPECT_EQ(guest.u64(at), 0x1122334455667788u + clock);
    ASSERT_EQ(guest.call("clock_res_get", {clock, at}), "ESUCCESS");
    EXPECT_EQ(guest.u64(at), 1000u + clock);
  }
  EXPECT_EQ(guest.call("clock_time_get", {4, 0, at}), "EINVAL");
  EXPECT_EQ(guest.call("clock_res_get", {0xffffffff, at}), "EINVAL");
  EXPECT_EQ(guest.u64(at), 1003u);
}

TEST(WasiClock, host_clocks_exist_and_the_monotonic_one_does_not_go_back) {
  Guest guest(WasiConfig{});
  const uint32_t at = guest.alloc(8);
  uint64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(guest.call("clock_time_get", {wasi::kMonotonic, 0, at}), "ESUCCESS");
    EXPECT_GE(guest.u64(at), before);
    before = guest.u64(at);
  }
  for (uint32_t clock = 0; clock < 4; ++clock) {
    ASSERT_EQ(guest.call("clock_res_get", {clock, at}), "ESUCCESS");
    EXPECT_GT(guest.u64(at), 0u);
  }
  EXPECT_EQ(guest.call("clock_time_get", {4, 0, at}), "EINVAL");
}

TEST(WasiRandom, exactly_the_buffer_is_filled) {
  FixedSystem system;
  WasiConfig config;
  config.system = &system;
  Guest guest(config);
  const uint32_t at = guest.alloc(16);
  ASSERT_EQ(guest.call("random_get", {at + 4, 8}), "ESUCCESS");
  EXPECT_EQ(system.drawn, 8u);
  EXPECT_EQ(guest.bytes[at + 3], 0xcc);
  EXPECT_EQ(guest.bytes[at + 4], 1);
  EXPECT_EQ(guest.bytes[at + 11], 8);
  EXPECT_EQ(guest.bytes[at + 12], 0xcc);
  EXPECT_EQ(guest.call("random_get", {at, 0}), "ESUCCESS");
}

TEST(WasiRandom, a_large_buffer_is_filled_to_its_end) {
  constexpr size_t kSize = 40 << 20;  // more than the kernel returns in one call
  Guest guest(WasiConfig{}, kSize);
  std::fill(guest.bytes.begin(), guest.bytes.end(), 0);
  ASSERT_EQ(guest.call("random_get", {0, kSize}), "ESUCCESS");
  // The odds that 4 KiB are all zero are 2^-32768.
  for (size_t at = 0; at < kSize; at += 4096) {
    const auto page = guest.bytes.begin() + static_cast<long>(at);
    ASSERT_TRUE(std::any_of(page, page + 4096, [](uint8_t b) { return b != 0; })) << at;
  }
}

TEST(WasiProcess, exit_is_an_outcome_and_is_remembered) {
  Guest guest(WasiConfig{});
  EXPECT_FALSE(guest.wasi->exit_code().has_value());
  const WasiOutcome outcome = guest.outcome("proc_exit", {0xffffffff'00000007});
  EXPECT_TRUE(outcome.exit);
  EXPECT_EQ(outcome.exit_code, 7u);
  EXPECT_EQ(guest.wasi->exit_code(), 7u);
}

TEST(WasiProcess, what_is_not_supported_says_so) {
  Guest guest(WasiConfig{});
  EXPECT_EQ(guest.call("sched_yield", {}), "ESUCCESS");
  EXPECT_EQ(guest.call("proc_raise", {9}), "ENOSYS");
}

TEST(WasiProcess, what_is_no_socket_is_none) {
  Guest guest(WasiConfig{});
  const std::pair<uint64_t, const char*> rows[] = {{3, "EBADF"}, {0, "ENOTSOCK"}, {1, "ENOTSOCK"}};
  for (const auto& [fd, answer] : rows) {
    EXPECT_EQ(guest.call("sock_accept", {fd, 0, 0}), answer);
    EXPECT_EQ(guest.call("sock_recv", {fd, 0, 0, 0, 0, 0}), answer);
    EXPECT_EQ(guest.call("sock_send", {fd, 0, 0, 0, 0}), answer);
    EXPECT_EQ(guest.call("sock_shutdown", {fd, 0}), answer);
  }
}

TEST(WasiTable, every_function_is_found_by_its_name_and_nothing_else_is) {
  std::set<std::string> names;
  for (const WasiFunction& function : wasi_functions()) {
    EXPECT_EQ(find_wasi_function(function.name), &function);
    EXPECT_TRUE(names.insert(function.name).second) << function.name;
    const std::string signature = function.signature;
    EXPECT_EQ(signature.find_first_not_of("iI>"), std::string::npos) << signature;
    EXPECT_EQ(std::count(signature.begin(), signature.end(), '>'), 1) << signature;
  }
  EXPECT_EQ(names.size(), 46u);
  EXPECT_EQ(find_wasi_function(""), nullptr);
  EXPECT_EQ(find_wasi_function("fd_"), nullptr);
  EXPECT_EQ(find_wasi_function("fd_readx"), nullptr);
  EXPECT_EQ(find_wasi_function("zzz"), nullptr);
}

TEST(WasiErrno, host_errors_map_to_their_namesakes) {
  using wasi::Errno;
  using wasi::from_host;
  EXPECT_EQ(from_host(0), Errno::kSuccess);
  EXPECT_EQ(from_host(EAGAIN), Errno::kAgain);
  EXPECT_EQ(from_host(EWOULDBLOCK), Errno::kAgain);
  EXPECT_EQ(from_host(EOPNOTSUPP), Errno::kNotsup);
  EXPECT_EQ(from_host(EDEADLOCK), Errno::kDeadlk);
  EXPECT_EQ(from_host(EXDEV), Errno::kXdev);
  EXPECT_EQ(from_host(ENOTEMPTY), Errno::kNotempty);
  EXPECT_EQ(from_host(123456), Errno::kIo);
  EXPECT_STREQ(wasi_errno_name(8), "EBADF");
  EXPECT_STREQ(wasi_errno_name(76), "ENOTCAPABLE");
  EXPECT_STREQ(wasi_errno_name(77), "E?");
  // Each errno that both sides have is reached from exactly one host number.
  std::set<Errno> reached;
  for (int host = 1; host < 134; ++host) reached.insert(from_host(host));
  EXPECT_EQ(reached.size(), 75u);  // 77, without success and ENOTCAPABLE
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_args_test
