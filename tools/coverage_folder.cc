#include "tools/coverage_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "embed/wasm/hash.h"
#include "tools/commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& path, const char* what, int error) {
  return {ErrorCode::kIo, path + ": " + what + ": " + std::strerror(error)};
}

// Holds the lock of a directory, which goes when the process does.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) {
      error_ = errno;
      return;
    }
    int taken = 0;
    do { taken = flock(fd_, LOCK_EX); } while (taken != 0 && errno == EINTR);
    if (taken != 0) error_ = errno;
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  int error() const { return error_; }  // 0 if it is held

 private:
  int fd_;
  int error_ = 0;
};

Result<Coverage> read_coverage(const std::string& path) {
  Result<std::vector<uint8_t>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  Result<Coverage> c = coverage_from_json(std::string(bytes->begin(), bytes->end()));
  if (c) return c;
  return Error{c.error().code, path + ": " + c.error().message + "; move it out of the directory"};
}

std::string json_of(const std::string& folder, const std::string& module,
                    std::span<const uint8_t> bytes) {
  char hash[20];
  std::snprintf(hash, sizeof hash, "-%016" PRIx64, wasm::hash_bytes(bytes));
  return folder + "/" + fs::path(module).stem().string() + hash + ".json";
}

// Writes the coverage of all modules.
Status write_info(const std::string& folder, size_t& missing) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, error)) {
    if (e.path().extension() == ".json") names.insert(e.path().string());
  }
  if (error) return Error{ErrorCode::kIo, folder + ": " + error.message()};
  std::string text;
  missing = 0;
  for (const std::string& name : names) {
    Result<Coverage> c = read_coverage(name);
    if (!c) return c.error();
    missing += leave_out_missing(*c);
    text += coverage_lcov(*c);
  }
  return write_text(folder + "/coverage.info", text);
}

}  // namespace

bool is_coverage_folder(const std::string& path) {
  std::error_code error;
  return path.ends_with('/') || fs::is_directory(path, error);
}

Status add_to_folder(const std::string& folder, const std::string& module,
                     std::span<const uint8_t> bytes, const Coverage& run, size_t& missing) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{ErrorCode::kIo, folder + ": cannot be made: " + error.message()};
  const FolderLock lock(folder);
  if (lock.error() != 0) return system_error(folder, "cannot be locked", lock.error());
  const std::string path = json_of(folder, module, bytes);
  Coverage sum = run;
  if (fs::exists(path, error)) {
    Result<Coverage> before = read_coverage(path);
    if (!before) return before.error();
    if (Status s = add_coverage(*before, run); !s) {
      return Error{s.error().code, path + ": " + s.error().message + "; use another directory"};
    }
    sum = std::move(*before);
  }
  if (Status s = write_text(path, coverage_json(sum)); !s) return s;
  return write_info(folder, missing);
}

}  // namespace uptier::tools
