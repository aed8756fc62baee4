// wasi_guest.h: a guest for tests of the WASI functions: its memory is a byte vector, its file
// system a scratch directory.
//
// The directory holds `box`, which is preopened as descriptor 3, and `outside`, which no guest may
// reach and which holds `secret`.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "embed/wasi/abi.h"
#include "embed/wasi/wasi.h"

namespace uptier::wasm::test {

inline constexpr uint32_t kBox = 3;
inline constexpr uint32_t kNever = 0xdeadbeef;

class WasiWorld {
 public:
  WasiWorld() {
    std::string name = (std::filesystem::temp_directory_path() / "uptier-wasi-XXXXXX").string();
    root_ = ::mkdtemp(name.data()) != nullptr ? name : "";
    EXPECT_FALSE(root_.empty());
    std::filesystem::create_directories(box());
    std::filesystem::create_directories(root_ + "/outside");
    write(root_ + "/outside/secret", "secret");
  }
  ~WasiWorld() {
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }
  WasiWorld(const WasiWorld&) = delete;
  WasiWorld& operator=(const WasiWorld&) = delete;

  const std::string& root() const { return root_; }
  std::string box() const { return root_ + "/box"; }
  std::string in_box(const std::string& name) const { return box() + "/" + name; }
  std::string outside(const std::string& name) const { return root_ + "/outside/" + name; }

  static void write(const std::string& path, std::string_view content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static std::string content(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  static bool exists(const std::string& path) {
    struct stat st;
    return ::lstat(path.c_str(), &st) == 0;
  }
  // Lists every file below the root with its type, size and link text, to compare before and after
  // a call that must not change anything.
  std::string picture() const {
    std::ostringstream out;
    std::vector<std::string> lines;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      std::string line = entry.path().string();
      if (entry.is_symlink()) {
        line += " -> " + std::filesystem::read_symlink(entry.path()).string();
      } else if (entry.is_regular_file()) {
        line += " = " + content(entry.path().string());
      }
      lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) out << line << "\n";
    return out.str();
  }

 private:
  std::string root_;
};

// A guest's memory with a bump allocator, and WASI calls by name. Each call returns the name of the
// WASI errno.
class Guest {
 public:
  explicit Guest(WasiConfig config, size_t memory = 256 * 1024) : bytes(memory, 0xcc) {
    auto made = Wasi::create(std::move(config));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    if (made.ok()) wasi = std::move(*made);
  }

  WasiOutcome outcome(const char* name, std::initializer_list<uint64_t> args) {
    const WasiFunction* function = find_wasi_function(name);
    if (function == nullptr) {
      ADD_FAILURE() << "no function " << name;
      return {};
    }
    const std::string_view signature = function->signature;
    EXPECT_EQ(signature.find('>'), args.size()) << name;
    return function->handler(*wasi, memory(), args.begin());
  }
  std::string call(const char* name, std::initializer_list<uint64_t> args) {
    return wasi_errno_name(outcome(name, args).errno_);
  }

  GuestMemory memory() { return GuestMemory{bytes.data(), bytes.size()}; }

  uint32_t alloc(size_t size) {
    const uint32_t at = top_;
    EXPECT_LE(top_ + size, bytes.size());
    top_ += static_cast<uint32_t>(size);
    return at;
  }
  void release_all() { top_ = 16; }

  uint32_t put(std::string_view text) {
    const uint32_t at = alloc(text.size());
    std::copy(text.begin(), text.end(), bytes.begin() + at);
    return at;
  }
  uint32_t put_iovecs(std::initializer_list<std::pair<uint32_t, uint32_t>> parts) {
    const uint32_t at = alloc(parts.size() * 8);
    uint32_t slot = at;
    for (const auto& [address, size] : parts) {
      wasi::put32(&bytes[slot], address);
      wasi::put32(&bytes[slot + 4], size);
      slot += 8;
    }
    return at;
  }
  std::string text(uint32_t at, size_t size) const {
    return std::string(bytes.begin() + at, bytes.begin() + at + static_cast<long>(size));
  }
  uint16_t u16(uint32_t at) const { return wasi::get16(&bytes[at]); }
  uint32_t u32(uint32_t at) const { return wasi::get32(&bytes[at]); }
  uint64_t u64(uint32_t at) const { return wasi::get64(&bytes[at]); }

  struct OpenOptions {
    uint32_t dir = kBox;
    uint32_t lookup = wasi::kLookupFollow;
    uint16_t oflags = 0;
    uint64_t base = wasi::kFdRead | wasi::kFdSeek | wasi::kFdTell | wasi::kFdFilestatGet;
    uint64_t inheriting = 0;
    uint16_t fdflags = 0;
  };
  // Opens a file; stores the new descriptor in `fd`.
  std::string open(std::string_view path, OpenOptions o) {
    const uint32_t at = put(path);
    const uint32_t result = alloc(4);
    const std::string error = call("path_open", {o.dir, o.lookup, at, path.size(), o.oflags, o.base,
                                                 o.inheriting, o.fdflags, result});
    fd = error == "ESUCCESS" ? u32(result) : kNever;
    return error;
  }
  std::string open(std::string_view path) { return open(path, OpenOptions()); }
  std::string create(std::string_view path, uint16_t fdflags = 0) {
    OpenOptions o;
    o.oflags = wasi::kOpenCreat;
    o.base = wasi::kFileRights;
    o.fdflags = fdflags;
    return open(path, o);
  }

  std::string write(uint32_t to, std::string_view content) {
    const uint32_t iovec = put_iovecs({{put(content), content.size()}});
    const uint32_t result = alloc(4);
    const std::string error = call("fd_write", {to, iovec, 1, result});
    count = error == "ESUCCESS" ? u32(result) : kNever;
    return error;
  }
  std::string read(uint32_t from, uint32_t size) {
    const uint32_t buffer = alloc(size);
    const uint32_t iovec = put_iovecs({{buffer, size}});
    const uint32_t result = alloc(4);
    const std::string error = call("fd_read", {from, iovec, 1, result});
    count = error == "ESUCCESS" ? u32(result) : kNever;
    if (error == "ESUCCESS") data = text(buffer, count);
    return error;
  }

  // Calls a function that takes (fd, path, size).
  std::string path_call(const char* name, std::string_view path, uint32_t dir = kBox) {
    return call(name, {dir, put(path), path.size()});
  }
  std::string symlink(std::string_view content, std::string_view path) {
    return call("path_symlink", {put(content), content.size(), kBox, put(path), path.size()});
  }
  std::string rename(std::string_view from, std::string_view to) {
    return call("path_rename", {kBox, put(from), from.size(), kBox, put(to), to.size()});
  }
  std::string link(std::string_view from, std::string_view to, uint32_t lookup = 0) {
    return call("path_link", {kBox, lookup, put(from), from.size(), kBox, put(to), to.size()});
  }
  std::string readlink(std::string_view path, uint32_t room = 4096) {
    const uint32_t buffer = alloc(room);
    const uint32_t result = alloc(4);
    const std::string error =
        call("path_readlink", {kBox, put(path), path.size(), buffer, room, result});
    if (error == "ESUCCESS") data = text(buffer, u32(result));
    return error;
  }
  // Stores the result at `stat`.
  std::string filestat(std::string_view path, uint32_t lookup = 0, uint32_t dir = kBox) {
    stat = alloc(64);
    return call("path_filestat_get", {dir, lookup, put(path), path.size(), stat});
  }

  std::vector<uint8_t> bytes;
  std::unique_ptr<Wasi> wasi;
  uint32_t fd = kNever;
  uint32_t count = kNever;
  uint32_t stat = 0;
  std::string data;

 private:
  uint32_t top_ = 16;  // address 0 stays a null pointer
};

inline WasiConfig box_config(const WasiWorld& world, WasiResolver resolver = WasiResolver::kAuto) {
  WasiConfig config;
  config.args = {"prog", "first", ""};
  config.env = {"HOME=/", "EMPTY="};
  config.preopens = {{world.box(), "/box"}};
  config.resolver = resolver;
  return config;
}

inline std::string resolver_name(const testing::TestParamInfo<WasiResolver>& info) {
  return info.param == WasiResolver::kWalk ? "walk" : "openat2";
}

// A world with a guest; each test runs once for each way to resolve paths.
class WasiResolved : public testing::TestWithParam<WasiResolver> {
 protected:
  void SetUp() override {
    WasiConfig config = box_config(world, GetParam());
    if (GetParam() == WasiResolver::kOpenat2 && !Wasi::create(config).ok()) {
      GTEST_SKIP()
          << "SKIPPED: this kernel has no openat2, paths that leave a directory were not tried";
    }
    guest = std::make_unique<Guest>(std::move(config));
  }

  WasiWorld world;
  std::unique_ptr<Guest> guest;
};

inline auto both_resolvers() {
  return testing::Values(WasiResolver::kOpenat2, WasiResolver::kWalk);
}

}  // namespace uptier::wasm::test
