// walk.cc: the walk; see walk.h for its invariants.
#include "embed/wasi/walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

constexpr int kProbe = O_PATH | O_NOFOLLOW | O_CLOEXEC;

// Retries if the last component changes its kind between the look and the open.
constexpr int kMaxRaces = 16;

int open_retrying(int directory, const char* name, int flags, mode_t mode) {
  int fd;
  do { fd = ::openat(directory, name, flags, mode); } while (fd < 0 && tries_again(errno));
  return fd;
}

}  // namespace

Walk::~Walk() {
  while (depth_ > 0) ::close(stack_[--depth_]);
}

Errno Walk::prepend(const char* text, size_t size) {
  if (size > head_) return Errno::kNametoolong;
  head_ -= size;
  std::memcpy(rest_ + head_, text, size);
  return Errno::kSuccess;
}

bool Walk::next(Errno* error) {
  while (head_ < kRestCapacity && rest_[head_] == '/') ++head_;
  if (head_ == kRestCapacity) return false;
  size_t end = head_;
  while (end < kRestCapacity && rest_[end] != '/') ++end;
  const size_t size = end - head_;
  if (size >= sizeof name_) {
    *error = Errno::kNametoolong;
    return false;
  }
  std::memcpy(name_, rest_ + head_, size);
  name_[size] = 0;
  head_ = end;
  last_ = end == kRestCapacity;
  return true;
}

Errno Walk::go_up() {
  if (depth_ == 0) return Errno::kPerm;
  ::close(stack_[--depth_]);
  return Errno::kSuccess;
}

Errno Walk::follow(int link) {
  if (++links_ > kMaxLinks) return Errno::kLoop;
  char text[4096];
  const ssize_t size = ::readlinkat(link, "", text, sizeof text);
  if (size < 0) return from_host(errno);
  if (size == 0) return Errno::kNoent;
  if (static_cast<size_t>(size) == sizeof text) return Errno::kNametoolong;
  if (text[0] == '/') return Errno::kPerm;
  return prepend(text, static_cast<size_t>(size));
}

Errno Walk::enter(const char* name) {
  OwnedFd found(open_retrying(top(), name, kProbe, 0));
  if (!found.valid()) return from_host(errno);
  struct stat st;
  if (::fstat(found.get(), &st) != 0) return from_host(errno);
  if (S_ISLNK(st.st_mode)) return follow(found.get());
  if (!S_ISDIR(st.st_mode)) return Errno::kNotdir;
  if (depth_ == kMaxDepth) return Errno::kNametoolong;
  stack_[depth_++] = found.release();
  return Errno::kSuccess;
}

Errno Walk::open_last(int flags, mode_t mode, OwnedFd* out) {
  for (int races = 0; races < kMaxRaces; ++races) {
    OwnedFd found(open_retrying(top(), name_, kProbe, 0));
    const int probe_error = found.valid() ? 0 : errno;
    const bool creates = probe_error == ENOENT && (flags & O_CREAT);
    if (probe_error != 0 && !creates) return from_host(probe_error);
    struct stat st = {};
    if (found.valid() && ::fstat(found.get(), &st) != 0) return from_host(errno);
    const bool exclusive = (flags & O_CREAT) && (flags & O_EXCL);
    if (S_ISLNK(st.st_mode) && !exclusive && !(flags & O_NOFOLLOW)) {
      expanded_ = true;
      return follow(found.get());
    }
    if ((flags & O_PATH) && found.valid()) {
      if ((flags & O_DIRECTORY) && !S_ISDIR(st.st_mode)) return Errno::kNotdir;
      *out = std::move(found);
      return Errno::kSuccess;
    }
    // The flags decide what becomes of a link that is not followed; the kernel knows them all.
    OwnedFd opened(open_retrying(top(), name_, flags | O_NOFOLLOW, mode));
    if (opened.valid()) {
      *out = std::move(opened);
      return Errno::kSuccess;
    }
    const int error = errno;
    const bool raced = error == ELOOP && !S_ISLNK(st.st_mode) && !(flags & O_NOFOLLOW);
    if (!raced) return from_host(error);
  }
  return Errno::kLoop;
}

Errno Walk::open(const char* path, int flags, mode_t mode, OwnedFd* out) {
  Errno error = prepend(path, std::strlen(path));
  while (error == Errno::kSuccess && next(&error)) {
    if (std::strcmp(name_, ".") == 0) continue;
    if (std::strcmp(name_, "..") == 0) {
      error = go_up();
      continue;
    }
    if (!last_) {
      error = enter(name_);
      continue;
    }
    expanded_ = false;
    error = open_last(flags, mode, out);
    if (!expanded_) return error;
  }
  if (error != Errno::kSuccess) return error;
  // The path ended in a directory that has been entered: open that one, as the caller wants it.
  OwnedFd opened(open_retrying(top(), ".", flags | O_NOFOLLOW, mode));
  if (!opened.valid()) return from_host(errno);
  *out = std::move(opened);
  return Errno::kSuccess;
}

}  // namespace uptier::wasm::wasi
