#include "tiering/base/address_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace uptier::tiering {
namespace {

constexpr uint64_t kShare = 16;
// The least values of the options.
constexpr uint64_t kLeastCode = 1u << 16, kLeastSlabs = 1u << 12;

}  // namespace

uint64_t address_space_left() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return UINT64_MAX;
  char text[64] = {};
  const ssize_t got = ::read(fd, text, sizeof text - 1);  // pages; the first number is the size
  ::close(fd);
  const uint64_t used = got > 0 ? std::strtoull(text, nullptr, 10) * 4096 : 0;
  if (used == 0) return UINT64_MAX;
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

void fit_address_space(Options& o, uint64_t left) noexcept {
  o.code_budget = std::min(o.code_budget, std::max(left / kShare, kLeastCode));
  o.slab_budget = std::min(o.slab_budget, std::max(left / kShare, kLeastSlabs));
}

}  // namespace uptier::tiering
