#include "tools/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace uptier::tools {
namespace {

// Reads a regular file of at most `most` bytes; returns its size, or a negative number.
ssize_t read_small(int fd, const struct stat& info, off_t most, profile::Bytes& buffer) {
  if (!S_ISREG(info.st_mode) || info.st_size > most) return -1;
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

void InputFile::let_go(profile::ByteSpan part) const {
  const bool mapped = !mapped_.bytes().empty() && !part.empty();
  if (mapped) mapped_.let_go(part);
}

Status InputFile::open(const std::string& path) {
  bytes_ = {};
  mapped_ = {};
  identity_ = {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info {};
  const bool known = fd >= 0 && ::fstat(fd, &info) == 0;
  if (known) {
    identity_ = {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), info.st_mtim.tv_sec,
                 info.st_mtim.tv_nsec};
  }
  const ssize_t size = known ? read_small(fd, info, kSmall, buffer_) : -1;
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
