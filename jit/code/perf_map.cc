#include "jit/code/perf_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace uptier::jit {

Result<std::unique_ptr<PerfMap>> PerfMap::create() {
  std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return Error{ErrorCode::kIo, path + ": " + std::strerror(errno)};
  return std::unique_ptr<PerfMap>(new PerfMap(fd));
}

PerfMap::~PerfMap() { close(fd_); }

void PerfMap::add(const void* base, size_t size, std::string_view name) {
  char head[64];
  int n = std::snprintf(head, sizeof head, "%llx %zx ",
                        static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(base)), size);
  std::string line(head, static_cast<size_t>(n));
  for (char c : name) line += c == '\n' ? ' ' : c;
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    ssize_t written = write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      ++errors_;
      return;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace uptier::jit
