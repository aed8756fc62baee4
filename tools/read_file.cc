#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/commands.h"

namespace uptier::tools {

bool read_file(const std::string& path, std::vector<uint8_t>& out) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (f == nullptr) {
    std::fprintf(stderr, "uptier: %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
  }
  uint8_t buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, f))
    out.insert(out.end(), buffer, buffer + n);
  bool ok = std::ferror(f) == 0;
  if (!ok) std::fprintf(stderr, "uptier: %s: cannot be read\n", path.c_str());
  std::fclose(f);
  return ok;
}

}  // namespace uptier::tools
