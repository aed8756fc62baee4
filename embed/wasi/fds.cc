// fds.cc: the descriptor table; see fds.h for its law.
#include "embed/wasi/fds.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace uptier::wasm::wasi {

int OwnedFd::reset() {
  const int fd = release();
  if (fd < 0) return 0;
  // After EINTR Linux has closed the descriptor: a second close could hit somebody else's.
  return ::close(fd) == 0 || errno == EINTR ? 0 : errno;
}

FdTable::~FdTable() {
  for (uint32_t fd = 0; fd < capacity_; ++fd) {
    if (!entries_[fd].owned) entries_[fd].host.release();
  }
}

FdEntry* FdTable::find(uint32_t fd) {
  return fd < capacity_ && entries_[fd].open ? &entries_[fd] : nullptr;
}

Errno FdTable::require(uint32_t fd, Rights need, FdEntry** out) {
  FdEntry* entry = find(fd);
  if (entry == nullptr) return Errno::kBadf;
  const Rights missing = need & ~entry->base;
  if (missing != 0) {
    if (entry->is_directory()) {
      return missing & kFileOnlyRights ? Errno::kIsdir : Errno::kNotcapable;
    }
    return missing & kDirectoryOnlyRights ? Errno::kNotdir : Errno::kNotcapable;
  }
  *out = entry;
  return Errno::kSuccess;
}

Errno FdTable::grow(uint32_t wanted) {
  if (wanted <= capacity_) return Errno::kSuccess;
  std::unique_ptr<FdEntry[]> grown(new (std::nothrow) FdEntry[wanted]);
  if (grown == nullptr) return Errno::kNomem;
  for (uint32_t fd = 0; fd < capacity_; ++fd) grown[fd] = std::move(entries_[fd]);
  entries_ = std::move(grown);
  capacity_ = wanted;
  return Errno::kSuccess;
}

Errno FdTable::reserve(uint32_t* fd) {
  for (uint32_t i = kFirst; i < capacity_; ++i) {
    if (entries_[i].open) continue;
    *fd = i;
    return Errno::kSuccess;
  }
  if (capacity_ >= kMax) return Errno::kMfile;
  const uint32_t first_new = capacity_ < kFirst ? kFirst : capacity_;
  const uint32_t doubled = first_new * 2 < 16 ? 16 : first_new * 2;
  const Errno error = grow(doubled < kMax ? doubled : kMax);
  if (error == Errno::kSuccess) *fd = first_new;
  return error;
}

void FdTable::place(uint32_t fd, FdEntry entry) {
  entry.open = true;
  entries_[fd] = std::move(entry);
}

Errno FdTable::close(uint32_t fd) {
  FdEntry* entry = find(fd);
  if (entry == nullptr) return Errno::kBadf;
  if (!entry->owned) entry->host.release();
  const int error = entry->host.reset();
  *entry = FdEntry();
  return from_host(error);
}

Errno FdTable::renumber(uint32_t from, uint32_t to) {
  if (find(from) == nullptr || find(to) == nullptr) return Errno::kBadf;
  if (from == to) return Errno::kSuccess;
  // An error of closing `to` is lost, as with dup2(2): the move itself succeeds.
  close(to);
  entries_[to] = std::move(entries_[from]);
  entries_[from] = FdEntry();
  return Errno::kSuccess;
}

FileType type_of_mode(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFBLK: return FileType::kBlockDevice;
    case S_IFCHR: return FileType::kCharacterDevice;
    case S_IFDIR: return FileType::kDirectory;
    case S_IFREG: return FileType::kRegularFile;
    case S_IFLNK: return FileType::kSymbolicLink;
    case S_IFSOCK: return FileType::kSocketStream;
    default: return FileType::kUnknown;
  }
}

int describe(int host, Rights wanted, FdEntry* entry) {
  struct stat st;
  if (::fstat(host, &st) != 0) return errno;
  entry->type = type_of_mode(st.st_mode);
  entry->signals_on_write = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
  if (S_ISSOCK(st.st_mode)) {
    int kind = SOCK_STREAM;
    socklen_t size = sizeof kind;
    (void)::getsockopt(host, SOL_SOCKET, SO_TYPE, &kind, &size);
    if (kind == SOCK_DGRAM) entry->type = FileType::kSocketDgram;
  }
  entry->base = wanted & (entry->is_directory() ? kDirectoryRights : kFileRights);
  // wasi-libc takes a character device that can neither seek nor tell for a terminal.
  const bool terminal = S_ISCHR(st.st_mode) && ::isatty(host) == 1;
  if (terminal) entry->base &= ~(kFdSeek | kFdTell);
  return 0;
}

}  // namespace uptier::wasm::wasi
