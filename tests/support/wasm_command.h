// wasm_command.h: runs a command under WASI and captures its output.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "embed/wasi/bind.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test {

// Captures a guest's standard output in an unnamed file.
class Output {
 public:
  Output() : file_(std::tmpfile()) {}
  ~Output() { std::fclose(file_); }
  int fd() const { return fileno(file_); }
  std::string text() const {
    std::string s(static_cast<size_t>(::lseek(fd(), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(fd(), s.data(), s.size(), 0), static_cast<ssize_t>(s.size()));
    return s;
  }

 private:
  std::FILE* file_;
};

struct Ended {
  CommandResult result;
  std::string out;
};

// Runs a command. With `registered`, all functions get their methods first, in order, so runtimes
// that describe functions at different times number the methods alike.
inline Ended run_command(Engine& engine, const Bytes& bytes,
                         std::vector<std::string> args = {"test"},
                         std::optional<Bounds> registered = {}) {
  Output out;
  WasiConfig config;
  config.args = std::move(args);
  config.stdout_fd = out.fd();
  auto wasi = Wasi::create(std::move(config));
  auto module = Module::load(engine, bytes);
  EXPECT_TRUE(wasi.ok() && module.ok());
  if (registered) { EXPECT_TRUE((*module)->methods(*registered).ok()); }
  Linker linker;
  bind_wasi(linker, **wasi);
  Store store(engine);
  Instantiation made = store.instantiate(**module, linker);
  EXPECT_TRUE(made.ok()) << (made.error ? made.error->message : made.trap.text());
  if (!made.ok()) return {};
  CommandResult r = run_start(*made.instance);
  return {r, out.text()};
}

}  // namespace uptier::wasm::test
