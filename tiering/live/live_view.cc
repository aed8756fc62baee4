// The side of the socket that asks.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/live/bind_socket.h"
#include "tiering/live/live_words.h"

namespace uptier {
namespace {

using tiering::OwnFd;
using tiering::SocketPlace;

constexpr int kAnswerMs = 5'000;  // until the next bytes of an answer
constexpr size_t kMostGreeting = 1024;

Error ended(const std::string& name) {
  return {ErrorCode::kNotFound, name + " has ended, or its runtime has"};
}

Error no_answer(const std::string& name, const char* what) {
  return {ErrorCode::kIo, name + ": " + what};
}

// Connects. `process`: the id that must be at the other end; 0: any of this user's.
Result<OwnFd> connect_to_peer(const SocketPlace& place, const std::string& name, uint64_t process) {
  OwnFd socket = tiering::new_socket();
  if (!socket) return tiering::socket_error(place.shown, "cannot make a socket", errno);
  int error = tiering::connect_to(place, socket);
  // EAGAIN: others are waiting to be let in.
  for (int i = 0; i < 100 && error == EAGAIN; ++i) {
    ::usleep(20'000);
    error = tiering::connect_to(place, socket);
  }
  if (error == ECONNREFUSED) return ended(name);
  if (error != 0) return tiering::socket_error(place.shown, "cannot connect", error);
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (!known || peer.uid != ::geteuid()) {
    return Error{ErrorCode::kIo,
                 place.shown + ": the process that listens there is another user's"};
  }
  if (process != 0 && static_cast<uint64_t>(peer.pid) != process) return ended(name);
  return socket;
}

// Why a process has no socket.
Error without_socket(uint64_t process, const std::string& name) {
  if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) {
    return {ErrorCode::kNotFound, "there is no process " + std::to_string(process)};
  }
  struct stat info {};
  const std::string entry = "/proc/" + std::to_string(process);
  if (::stat(entry.c_str(), &info) == 0 && info.st_uid != ::geteuid()) {
    return {ErrorCode::kIo, name + " is of user " + std::to_string(info.st_uid) +
                                ": only that user may see where its time goes"};
  }
  return {ErrorCode::kNotFound, name +
                                    " does not listen: start it with `uptier run --listen`, or set "
                                    "its option listen=on (UPTIER_LISTEN=on)"};
}

}  // namespace

Result<std::unique_ptr<LiveView>> LiveView::of_process(uint64_t process) try {
  if (process == 0 || process > INT32_MAX) {
    return Error{ErrorCode::kInvalidArgument, std::to_string(process) + " is not a process id"};
  }
  std::string name = "process " + std::to_string(process);
  Result<SocketPlace> place = tiering::place_of_process(process);
  if (!place) {
    const bool missing = place.error().code == ErrorCode::kNotFound;
    return missing ? without_socket(process, name) : place.error();
  }
  Result<OwnFd> socket = connect_to_peer(*place, name, process);
  if (!socket) {
    // A killed process has left the socket; its id may be another's by now.
    const bool left = socket.error().code == ErrorCode::kNotFound;
    return left ? without_socket(process, name) : socket.error();
  }
  return std::unique_ptr<LiveView>(new LiveView(socket->release(), std::move(name)));
} catch (const std::exception&) { return out_of_memory("a view"); }

Result<std::unique_ptr<LiveView>> LiveView::of_socket(const std::string& path) try {
  Result<SocketPlace> place = tiering::place_of_socket(path);
  if (!place) return place.error();
  std::string name = "the process at " + path;
  Result<OwnFd> socket = connect_to_peer(*place, name, 0);
  if (!socket) return socket.error();
  return std::unique_ptr<LiveView>(new LiveView(socket->release(), std::move(name)));
} catch (const std::exception&) { return out_of_memory("a view"); }

LiveView::~LiveView() { ::close(socket_); }

Result<LiveTime> LiveView::read() try {
  const std::string_view ask = tiering::kAskTime;
  if (::send(socket_, ask.data(), ask.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE) {
    return tiering::socket_error(name_, "cannot be asked", errno);
  }
  std::string text;
  size_t line = text.npos;  // bytes of the first one, once it is there
  size_t whole = SIZE_MAX;  // bytes of the answer, once they are known
  while (text.size() < whole) {
    pollfd in{socket_, POLLIN, 0};
    const int ready = ::poll(&in, 1, kAnswerMs);
    if (ready == 0) return no_answer(name_, "no answer within 5 seconds; is it stopped?");
    char bytes[1 << 16];
    const size_t most = std::min(sizeof bytes, whole - text.size());
    const ssize_t n = ready < 0 ? -1 : ::recv(socket_, bytes, most, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0 && errno != ECONNRESET) return tiering::socket_error(name_, "no answer", errno);
    if (n <= 0) return ended(name_);
    text.append(bytes, static_cast<size_t>(n));
    if (line != text.npos) continue;
    line = text.find('\n');
    if (line == text.npos && text.size() > kMostGreeting) line = kMostGreeting;
    if (line == text.npos) continue;
    Result<uint64_t> rest = tiering::read_greeting(std::string_view(text).substr(0, line));
    if (!rest) return Error{rest.error().code, name_ + ": " + rest.error().message};
    whole = line + 1 + *rest;
  }
  if (text.size() > whole) return Error{ErrorCode::kCorruptInput, name_ + ": too long an answer"};
  Result<LiveTime> t = tiering::read_live_time(std::string_view(text).substr(line + 1));
  if (!t) return Error{t.error().code, name_ + ": " + t.error().message};
  return t;
} catch (const std::exception&) { return out_of_memory("read"); }

}  // namespace uptier
