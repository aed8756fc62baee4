#include "tiering/base/log.h"

#include <cassert>

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace uptier::tiering {

void Log::say(LogLevel level, std::string_view text) const noexcept {
  assert(text.data()[text.size()] == 0);
  if (function_ != nullptr) return function_(user_, level, text);
  char begin[] = "uptier: ", end[] = "\n";
  const iovec line[] = {
      {begin, sizeof begin - 1}, {const_cast<char*>(text.data()), text.size()}, {end, 1}};
  while (::writev(STDERR_FILENO, line, 3) < 0 && errno == EINTR) {}
}

}  // namespace uptier::tiering
