#include "tiering/saved/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace uptier::tiering {
namespace {

constexpr size_t kSmall = 1 << 20;  // read at once, rather than by a fault a page

Error io_error(const std::string& path, const char* what, int error) {
  const char* text = strerrordesc_np(error);
  ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Error{
      code, path + ": " + what + ": " + (text != nullptr ? text : std::to_string(error).c_str())};
}

}  // namespace

FileId FileId::of(const struct stat& info) {
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
          info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

Result<MappedFile> MappedFile::open(const std::string& path, bool whole) {
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
  int error = 0;
  if (size != 0) {
    int small = whole && size <= kSmall ? MAP_POPULATE : 0;
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | small, fd, 0);
    error = at == MAP_FAILED ? errno : 0;
    if (error == 0) file.bytes_ = {static_cast<const std::byte*>(at), size};
  }
  ::close(fd);
  if (error != 0) return io_error(path, "cannot map the file", error);
  return file;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(id_, other.id_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace uptier::tiering
