#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

struct File {
  int fd;
  bool mine;
  ~File() {
    if (mine && fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<std::vector<uint8_t>> read_file(const std::string& path) {
  const auto io_error = [&path](int error) {
    const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, path + ": " + std::strerror(error)};
  };
  const bool in = path == kStream;
  const File file{in ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC), !in};
  if (file.fd < 0) return io_error(errno);
  std::vector<uint8_t> out;
  struct stat status;
  if (::fstat(file.fd, &status) == 0 && S_ISREG(status.st_mode)) {
    out.reserve(static_cast<size_t>(status.st_size));
  }
  uint8_t buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(errno);
    if (n == 0) return out;
    out.insert(out.end(), buffer, buffer + n);
  }
}

bool read_file(const std::string& path, std::vector<uint8_t>& out) {
  Result<std::vector<uint8_t>> bytes = read_file(path);
  if (!bytes) {
    fail(bytes.error());
    return false;
  }
  out = std::move(*bytes);
  return true;
}

}  // namespace uptier::tools
