#include <unistd.h>

#include <cerrno>

#include "profile/base/new_file.h"
#include "profile/base/wall.h"
#include "profile/base/write_all.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

class FileSink final : public ByteSink {
 public:
  explicit FileSink(int fd) : fd_(fd) {}
  ~FileSink() override { (void)close(); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  int64_t write(ByteSpan bytes) override {
    const ssize_t taken = write_some(fd_, bytes);
    return taken < 0 ? -errno : taken;
  }

  int close() override {
    if (fd_ < 0) return 0;
    const int fd = fd_;
    fd_ = -1;
    // After EINTR, Linux has closed the descriptor, and closing again could hit another file.
    return ::close(fd) < 0 && errno != EINTR ? -errno : 0;
  }

 private:
  int fd_;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> open_file_sink(const std::string& path) {
  Result<NewFile> file = NewFile::create(path);
  if (!file.ok()) return file.error();
  if (const int error = file->replace(); error != 0) {
    return io_error(path, "cannot replace the file", error);
  }
  return std::unique_ptr<ByteSink>(std::make_unique<FileSink>(file->release()));
}

}  // namespace uptier::profile

namespace uptier {

Result<std::unique_ptr<TraceSink>> trace_file_sink(const std::string& path) try {
  Result<std::unique_ptr<profile::ByteSink>> sink = profile::open_file_sink(path);
  if (!sink.ok()) return sink.error();
  auto writer = std::make_unique<profile::TraceWriter>(std::move(*sink));
  if (const Status status = writer->flush(); !status.ok()) return status.error();
  return std::unique_ptr<TraceSink>(std::move(writer));
} catch (const std::exception&) { return out_of_memory("trace"); }

}  // namespace uptier
