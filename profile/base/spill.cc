#include "profile/base/spill.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "profile/base/new_file.h"
#include "profile/base/write_all.h"

namespace uptier::profile {
namespace {

constexpr size_t kPiece = 64 << 10;

// For file systems that cannot create unnamed files.
int open_named(const std::string& folder) {
  std::string name = folder + "/.uptier-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(name.c_str());
  return fd;
}

}  // namespace

Result<Spill> Spill::create(const std::string& folder) {
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) fd = open_named(folder);
  if (fd < 0) return io_error(folder, "cannot make a temporary file", errno);
  return Spill(fd);
}

Spill::Spill(Spill&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), size_(other.size_), error_(other.error_) {}

Spill::~Spill() {
  if (fd_ >= 0) ::close(fd_);
}

void Spill::append(ByteSpan bytes) {
  if (error_ == 0) error_ = write_all(fd_, bytes);
  size_ += bytes.size();
}

int Spill::each(const std::function<int(ByteSpan)>& take) const {
  Bytes buffer(std::min<uint64_t>(kPiece, size_));
  int error = error_;
  for (uint64_t at = 0; error == 0 && at < size_;) {
    const ssize_t taken = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) return taken < 0 ? errno : EIO;
    const auto size = static_cast<size_t>(taken);
    error = take(ByteSpan(buffer).first(size));
    at += size;
  }
  return error;
}

}  // namespace uptier::profile
