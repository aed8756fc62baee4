#include "profile/upf/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace uptier::profile {
namespace {

// Enough for every stale temporary of earlier processes that had our process id.
constexpr int kNameAttempts = 100;

int open_new(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

Error io_error(const std::string& path, const char* what, int error) {
  const char* text = strerrordesc_np(error);
  return Error{ErrorCode::kIo, path + ": " + what + ": " +
                                   (text != nullptr ? text : std::to_string(error).c_str())};
}

Result<NewFile> NewFile::create(const std::string& path) {
  struct stat info;
  const bool exists = ::lstat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kIo, path + ": exists and is not a regular file"};
  }
  std::string temporary;
  int fd = -1;
  for (int i = 0; i < kNameAttempts; ++i) {
    temporary = path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(i);
    fd = open_new(temporary);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) return io_error(path, "cannot create the file", errno);
  return NewFile(path, std::move(temporary), fd);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

NewFile::~NewFile() {
  (void)close();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

int NewFile::replace() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return errno;
  temporary_.clear();
  return 0;
}

int NewFile::release() { return std::exchange(fd_, -1); }

int NewFile::close() {
  if (fd_ < 0) return 0;
  // After EINTR the descriptor is gone on Linux, and closing again could hit another file.
  return ::close(release()) != 0 && errno != EINTR ? errno : 0;
}

}  // namespace uptier::profile
