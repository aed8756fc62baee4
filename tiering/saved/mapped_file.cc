#include "tiering/saved/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

namespace uptier::tiering {
namespace {

Error io_error(const std::string& path, const char* what, int error) {
  const char* text = strerrordesc_np(error);
  ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Error{
      code, path + ": " + what + ": " + (text != nullptr ? text : std::to_string(error).c_str())};
}

// Reads up to `size` bytes; returns the number read, or a negative errno.
ssize_t read_all(int fd, std::byte* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t taken = ::read(fd, to + done, size - done);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return -errno;
    if (taken == 0) break;
    done += static_cast<size_t>(taken);
    assert(done <= size);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

FileId FileId::of(const struct stat& info) {
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
          info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return io_error(path, "cannot open the file", errno);
  struct stat info;
  bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) {
    ::close(fd);
    return Error{ErrorCode::kIo, path + ": not a regular file"};
  }
  MappedFile file;
  file.id_ = FileId::of(info);
  auto size = static_cast<size_t>(info.st_size);
  ssize_t taken = 0;
  if (size != 0) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    taken = at == MAP_FAILED ? -errno : read_all(fd, static_cast<std::byte*>(at), size);
    if (at != MAP_FAILED) file.mapped_ = {static_cast<std::byte*>(at), size};
  }
  ::close(fd);
  if (taken < 0) return io_error(path, "cannot read the file", static_cast<int>(-taken));
  assert(static_cast<size_t>(taken) <= file.mapped_.size());
  file.bytes_ = file.mapped_.first(static_cast<size_t>(taken));
  return file;
}

void MappedFile::let_go(std::span<const std::byte> part) const {
  assert(part.empty() || (part.data() >= bytes_.data() &&
                          part.data() + part.size() <= bytes_.data() + bytes_.size()));
  static const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  // The first and the last page may contain other data.
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) & ~(page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size()) & ~(page - 1);
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : mapped_(std::exchange(other.mapped_, {})),
      bytes_(std::exchange(other.bytes_, {})),
      id_(other.id_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(bytes_, other.bytes_);
  std::swap(id_, other.id_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

}  // namespace uptier::tiering
