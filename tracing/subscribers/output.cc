#include "tracing/subscribers/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace uptier::tracing {
namespace {

constexpr size_t kPiece = 4096;

}  // namespace

std::unique_ptr<Output> Output::open(const uptier_trace_api* api, const char* name,
                                     const char* fallback) {
  const std::string path = name[0] != '\0' ? name : fallback;
  if (path == "-") return std::unique_ptr<Output>(new Output(api, "stderr", STDERR_FILENO));
  // Do not follow a link: the name may be in a folder where others can write.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) return std::unique_ptr<Output>(new Output(api, path, fd));
  api->say((path + " cannot be written").c_str());
  return nullptr;
}

Output::Output(const uptier_trace_api* api, std::string name, int fd)
    : api_(api), name_(std::move(name)), fd_(fd) {
  piece_.reserve(kPiece);
}

Output::~Output() {
  flush();
  if (fd_ != STDERR_FILENO && ::close(fd_) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return;
  api_->lost(std::max<uint64_t>(lost_, 1));
  char line[4500];  // there may be no memory for it
  std::snprintf(line, sizeof line,
                "the trace %s is cut short: %" PRIu64 " of %" PRIu64 " events are lost: %s",
                name_.c_str(), lost_, events_, std::strerror(error_));
  api_->say(line);
}

void Output::append(std::string_view text, uint64_t events) {
  events_ += events;
  if (piece_.size() + text.size() > kPiece) flush();
  in_piece_ += events;
  if (text.size() <= kPiece) {
    piece_ += text;
    return;
  }
  write_piece(text);
}

void Output::flush() {
  write_piece(piece_);
  piece_.clear();
}

void Output::write_piece(std::string_view text) {
  while (error_ == 0 && !text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  if (error_ != 0) lost_ += in_piece_;
  in_piece_ = 0;
}

}  // namespace uptier::tracing
