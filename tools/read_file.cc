#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/streams.h"

namespace uptier::tools {

Result<std::vector<uint8_t>> read_file(const std::string& path) {
  const auto io_error = [&path](int error) {
    const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, path + ": " + std::strerror(error)};
  };
  const bool in = path == kStream;
  std::FILE* f = in ? stdin : std::fopen(path.c_str(), "rb");
  if (f == nullptr) return io_error(errno);
  std::vector<uint8_t> out;
  struct stat status;
  if (::fstat(::fileno(f), &status) == 0 && S_ISREG(status.st_mode)) {
    out.reserve(static_cast<size_t>(status.st_size));
  }
  uint8_t buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, f)) {
    out.insert(out.end(), buffer, buffer + n);
  }
  const int error = std::ferror(f) != 0 ? errno : 0;
  if (!in) std::fclose(f);
  if (error != 0) return io_error(error);
  return out;
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
