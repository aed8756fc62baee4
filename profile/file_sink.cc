#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "profile/trace_file.h"

namespace uptier::profile {
namespace {

// Enough for every stale temporary of earlier processes that had our process id.
constexpr int kNameAttempts = 100;

class FileSink final : public ByteSink {
 public:
  explicit FileSink(int fd) : fd_(fd) {}
  ~FileSink() override { (void)close(); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  int64_t write(ByteSpan bytes) override {
    const ssize_t taken = ::write(fd_, bytes.data(), bytes.size());
    return taken < 0 ? -errno : taken;
  }

  int close() override {
    if (fd_ < 0) return 0;
    const int fd = fd_;
    fd_ = -1;
    // After EINTR the descriptor is gone on Linux, and closing again could hit another file.
    return ::close(fd) < 0 && errno != EINTR ? -errno : 0;
  }

 private:
  int fd_;
};

Error io_error(const std::string& path, const char* what, int error) {
  const char* text = strerrordesc_np(error);
  return Error{ErrorCode::kIo, path + ": " + what + ": " +
                                   (text != nullptr ? text : std::to_string(error).c_str())};
}

int open_new(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

Result<std::unique_ptr<ByteSink>> open_file_sink(const std::string& path) {
  struct stat info;
  const bool exists = ::lstat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kIo, path + ": exists and is not a regular file"};
  }
  std::string temporary;
  int fd = -1;
  for (int i = 0; i < kNameAttempts; ++i) {
    temporary = path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(i);
    fd = open_new(temporary);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) return io_error(path, "cannot create the file", errno);
  auto sink = std::make_unique<FileSink>(fd);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return io_error(path, "cannot replace the file", error);
  }
  return std::unique_ptr<ByteSink>(std::move(sink));
}

}  // namespace uptier::profile

namespace uptier {

Result<std::unique_ptr<TraceSink>> trace_file_sink(const std::string& path) {
  Result<std::unique_ptr<profile::ByteSink>> sink = profile::open_file_sink(path);
  if (!sink.ok()) return sink.error();
  auto writer = std::make_unique<profile::TraceWriter>(std::move(*sink));
  if (const Status status = writer->flush(); !status.ok()) return status.error();
  return std::unique_ptr<TraceSink>(std::move(writer));
}

}  // namespace uptier
