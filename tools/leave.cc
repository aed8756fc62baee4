#include "tools/leave.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/commands.h"

namespace uptier::tools {

int written(int code) {
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (whole) return code;
  std::fprintf(stderr, "uptier: stdout: %s\n", std::strerror(errno));
  return code == kOk ? kFailed : code;
}

void leave(int code) { std::_Exit(written(code)); }

}  // namespace uptier::tools
