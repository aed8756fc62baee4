#include "tools/streams.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "profile/base/new_file.h"
#include "profile/base/write_all.h"
#include "profile/upf/file.h"

namespace uptier::tools {
namespace {

bool write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool copy_all(int from, int to) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    if (!write_all(to, buffer, static_cast<size_t>(n))) return false;
  }
}

}  // namespace

std::string seekable(const std::string& path) {
  struct stat info;
  const bool in = path == kStream;
  const bool wanted =
      in || (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
  if (!wanted) return path;
  const int from = in ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int copy = from < 0 ? -1 : ::memfd_create("uptier-input", MFD_CLOEXEC);
  const bool whole = copy >= 0 && copy_all(from, copy);
  if (from >= 0 && !in) ::close(from);
  if (whole) return "/proc/self/fd/" + std::to_string(copy);
  if (copy >= 0) ::close(copy);
  return path;
}

Status check_stdin(std::initializer_list<std::string_view> paths) {
  if (std::ranges::count(paths, kStream) < 2) return {};
  return Error{ErrorCode::kInvalidArgument, "- stands for stdin, which can be read only once"};
}

Status check_stdin(std::span<const std::string> paths) {
  return std::ranges::count(paths, kStream) < 2 ? Status() : check_stdin({kStream, kStream});
}

Status write_text(const std::string& path, const std::string& text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  if (path == kStream) return write_output(path, bytes);
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    return profile::replace_file(path, bytes, profile::Sync::kNo);
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool whole = fd >= 0 && write_all(fd, text.data(), text.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (whole) return {};
  return Error{ErrorCode::kIo, path + ": cannot write: " + std::strerror(error)};
}

Status write_output(const std::string& path, std::span<const std::byte> bytes) {
  if (path != kStream) return profile::replace_file(path, bytes);
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  return {};
}

Status write_output(const std::string& path, const profile::SegmentPieces& pieces) {
  if (path != kStream) {
    return profile::replace_file(path, [&](int fd) {
      return pieces.each([fd](profile::ByteSpan piece) { return profile::write_all(fd, piece); });
    });
  }
  const int error = pieces.each([](profile::ByteSpan piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return 0;
  });
  return error == 0 ? Status() : profile::io_error(path, "cannot write the file", error);
}

}  // namespace uptier::tools
