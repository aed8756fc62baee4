// Limits of `uptier run`: time, fuel, memory.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/program_runs.h"
#include "tests/support/wasm_world.h"

namespace uptier::test::cli_stop_test {
namespace {

class CliStop : public testing::Test {
 protected:
  CliStop() {
    char name[] = "/tmp/uptier-stop-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~CliStop() override { std::filesystem::remove_all(dir_); }

  std::string assembled(const std::string& text) {
    wasm::test::Bytes bytes = wasm::test::assemble(text);
    std::string path = dir_ + "/m.wasm";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    return path;
  }
  std::string dir_;
};

constexpr const char* kForever = R"((module
  (func (export "_start") (loop $l (br $l)))
  (func (export "count") (param i32) (result i32)
    (loop $l
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br_if $l (local.get 0)))
    (i32.const 7))))";

TEST_F(CliStop, a_loop_ends_with_exit_code_124) {
  std::string module = assembled(kForever);
  for (const char* how : {"", "--tier=baseline ", "--tier=optimized ", "--profile p.upf "}) {
    RunResult r =
        run_command("cd " + dir_ + " && " UPTIER_TOOL " run --timeout 0.2 " + how + module);
    EXPECT_EQ(r.code, 124) << how << r.err;
    EXPECT_NE(r.err.find("timeout: the program has run for 0.2 s"), std::string::npos) << r.err;
  }
}

TEST_F(CliStop, a_program_that_ends_in_time_is_its_own_master) {
  RunResult r = run_tool("run --timeout 60 --invoke count " + assembled(kForever) + " 1000");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "7\n");
}

// Reads from stdin, a pipe without a writer; or waits for an hour.
constexpr const char* kWaits = R"((module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "read") (result i32)
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 100))
    (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
  (func (export "sleep") (result i32)
    (i32.store (i32.const 80) (i32.const 1))
    (i64.store (i32.const 88) (i64.const 3600000000000))
    (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 8)))))";

TEST_F(CliStop, a_read_and_a_sleep_that_wait_end_too) {
  std::string module = assembled(kWaits), fifo = dir_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const char* function : {"read", "sleep"}) {
    RunResult r = run_command(UPTIER_TOOL " run --timeout 0.2 --invoke " + std::string(function) +
                              " " + module + " <> " + fifo);
    EXPECT_EQ(r.code, 124) << function << r.err;
    EXPECT_NE(r.err.find("timeout: "), std::string::npos) << r.err;
  }
}

TEST_F(CliStop, fuel_is_used_up_at_the_same_number_in_every_tier) {
  std::string module = assembled(kForever);
  for (const char* how : {"", "--tier=baseline ", "--tier=optimized ", "-O stress=osr=all "}) {
    std::string run = std::string("run ") + how + "--invoke count --fuel ";
    // One call and a thousand rounds.
    EXPECT_EQ(run_tool(run + "1001 " + module + " 1000").out, "7\n") << how;
    RunResult less = run_tool(run + "1000 " + module + " 1000");
    EXPECT_EQ(less.code, 134) << how;
    EXPECT_NE(less.err.find("out of fuel"), std::string::npos) << less.err;
  }
}

TEST_F(CliStop, memory_grows_to_the_limit_and_no_further) {
  std::string module = assembled(R"((module
    (memory 1)
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))))");
  auto grow = [&](const char* limit, const char* pages) {
    return run_tool(std::string("run --max-memory ") + limit + " --invoke grow " + module + " " +
                    pages);
  };
  EXPECT_EQ(grow("655360", "9").out, "1\n");
  EXPECT_EQ(grow("655360", "10").out, "-1\n");
  EXPECT_EQ(grow("65535", "0").code, 125);  // less than its initial memory
  RunResult r =
      run_tool("run --explicit-bounds --max-memory 655360 --invoke grow " + module + " 10");
  EXPECT_EQ(r.out, "-1\n");
}

}  // namespace
}  // namespace uptier::test::cli_stop_test
