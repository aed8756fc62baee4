#include "tools/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace uptier::tools {
namespace {

constexpr size_t kSmall = 1 << 20;

// Reads a regular file of at most kSmall bytes; returns its size, or a negative number.
ssize_t read_small(int fd, profile::Bytes& buffer) {
  struct stat info;
  const bool small = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                     info.st_size <= static_cast<off_t>(kSmall);
  if (!small) return -1;
  const auto wanted = static_cast<size_t>(info.st_size);
  if (buffer.size() < wanted) buffer.resize(wanted);
  size_t size = 0;
  while (size < wanted) {
    const ssize_t taken = ::read(fd, buffer.data() + size, wanted - size);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return -1;
    if (taken == 0) break;
    size += static_cast<size_t>(taken);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

Status InputFile::open(const std::string& path) {
  bytes_ = {};
  mapped_ = {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const ssize_t size = fd < 0 ? -1 : read_small(fd, buffer_);
  if (fd >= 0) ::close(fd);
  if (size >= 0) {
    bytes_ = profile::ByteSpan(buffer_).first(static_cast<size_t>(size));
    return {};
  }
  // Large; or else this says what is wrong.
  Result<tiering::MappedFile> mapped = tiering::MappedFile::open(path);
  if (!mapped) return mapped.error();
  mapped_ = std::move(*mapped);
  bytes_ = mapped_.bytes();
  return {};
}

}  // namespace uptier::tools
