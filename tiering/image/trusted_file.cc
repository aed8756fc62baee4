#include "tiering/image/trusted_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tiering/live/own_fd.h"

namespace uptier::tiering {
namespace {

Error io_error(const std::string& path, const char* what, int error) {
  const char* text = strerrordesc_np(error);
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return {code, path + ": " + what + ": " + (text != nullptr ? text : std::to_string(error))};
}

Error refused(const std::string& path, const std::string& rule) {
  return {ErrorCode::kInvalidInput, path + ": " + rule};
}

// Checks who can write a file or folder, which the messages call `what`.
Status check_writers(const std::string& path, const char* what, const struct stat& info) {
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return refused(path, std::string(what) + " belongs to user " + std::to_string(info.st_uid) +
                             ", neither this user nor root");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refused(path,
                   std::string(what) + " can be written by its group or others; run chmod go-w");
  }
  return {};
}

int open_again(int folder, const char* name, int flags) {
  int fd;
  do { fd = ::openat(folder, name, flags | O_CLOEXEC); } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

Result<TrustedFile> TrustedFile::read(const std::string& path, uint64_t most) {
  const size_t slash = path.rfind('/');
  const std::string folder_name = slash == path.npos ? "."
                                  : slash == 0       ? "/"
                                                     : path.substr(0, slash);
  const std::string name = slash == path.npos ? path : path.substr(slash + 1);
  const OwnFd folder(open_again(AT_FDCWD, folder_name.c_str(), O_PATH | O_DIRECTORY));
  if (folder.get() < 0) return io_error(path, "cannot open its folder", errno);
  struct stat info;
  if (::fstat(folder.get(), &info) != 0) return io_error(path, "cannot examine its folder", errno);
  if (Status s = check_writers(path, "its folder", info); !s) return s.error();
  const OwnFd file(open_again(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ELOOP) return refused(path, "it is a symbolic link");
  if (file.get() < 0) return io_error(path, "cannot open the file", errno);
  if (::fstat(file.get(), &info) != 0) return io_error(path, "cannot examine the file", errno);
  if (!S_ISREG(info.st_mode)) return refused(path, "it is not a regular file");
  if (Status s = check_writers(path, "it", info); !s) return s.error();
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size == 0) return refused(path, "it is empty");
  if (size > most) {
    return Error{ErrorCode::kResourceExhausted, path + ": it has " + std::to_string(size) +
                                                    " bytes, and at most " + std::to_string(most) +
                                                    " are read"};
  }
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (at == MAP_FAILED) {
    return Error{ErrorCode::kResourceExhausted, path + ": memory for it is refused"};
  }
  TrustedFile read;
  read.mapped_ = {static_cast<std::byte*>(at), size};
  size_t done = 0;
  while (done < size) {
    const ssize_t taken = ::read(file.get(), read.mapped_.data() + done, size - done);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return io_error(path, "cannot read the file", errno);
    if (taken == 0) break;
    done += static_cast<size_t>(taken);
  }
  read.bytes_ = read.mapped_.first(done);
  (void)::mprotect(at, size, PROT_READ);
  return read;
}

TrustedFile::TrustedFile(TrustedFile&& other) noexcept
    : mapped_(std::exchange(other.mapped_, {})), bytes_(std::exchange(other.bytes_, {})) {}

TrustedFile& TrustedFile::operator=(TrustedFile&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

TrustedFile::~TrustedFile() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

}  // namespace uptier::tiering
