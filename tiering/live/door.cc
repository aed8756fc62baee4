#include "tiering/live/door.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/live/bind_socket.h"
#include "tiering/live/live_words.h"
#include "tiering/live/sweep_sockets.h"

namespace uptier::tiering {
namespace {

constexpr size_t kStackBytes = 1u << 20;
constexpr uint64_t kDeafNs = 1'000'000'000;  // after the system has refused a descriptor

// Why a client of another user is sent away; empty if it is of ours.
std::string stranger(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "you are not known";
  if (peer.uid == ::geteuid()) return "";
  return "this process is of user " + std::to_string(::geteuid()) + ", and answers only that user";
}

// A short line fits into an empty socket.
void send_away(int fd, std::string_view why) {
  const std::string line = refusal_of(why);
  (void)::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<std::unique_ptr<Door>> Door::open(std::string_view listen, Answer answer, const void* of,
                                         const Limits& limits) try {
  Result<SocketPlace> place = place_to_listen(listen);
  if (!place) return place.error();
  std::unique_ptr<Door> door(new Door(std::move(*place), answer, of, limits));
  if (listen == "on") sweep_sockets(door->place_);
  if (Status s = door->listen(); !s) return s.error();
  if (Status s = door->start(); !s) return s.error();
  return door;
} catch (const std::exception&) { return out_of_memory("listen"); }

Status Door::listen() {
  Result<BoundSocket> bound = bind_socket(place_);
  if (!bound) return bound.error();
  socket_ = std::move(bound->fd);
  inode_ = bound->inode;
  stop_ = OwnFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) return socket_error(place_.shown, "cannot listen", errno);
  return {};
}

// Signals of the process are for its own threads.
Status Door::start() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t small;
  ::pthread_attr_init(&small);
  ::pthread_attr_setstacksize(&small, kStackBytes);
  auto run = [](void* door) -> void* {
    static_cast<Door*>(door)->run();
    return nullptr;
  };
  runs_ = ::pthread_create(&thread_, &small, run, this) == 0;
  ::pthread_attr_destroy(&small);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (runs_) return {};
  return Error{ErrorCode::kResourceExhausted,
               place_.shown + ": the system refused a thread to answer on the socket"};
}

// A child of a fork may still hold the sockets: shut down, they end for the clients all the same.
Door::~Door() {
  if (runs_) {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    ::pthread_join(thread_, nullptr);
  }
  for (Client& c : clients_) ::shutdown(c.fd.get(), SHUT_RDWR);
  if (!socket_) return;
  remove_socket();
  ::shutdown(socket_.get(), SHUT_RDWR);
}

// Unless another socket has its name by now.
void Door::remove_socket() const {
  struct stat info {};
  const char* name = place_.name.c_str();
  const bool there = ::fstatat(place_.directory.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && info.st_ino == inode_) ::unlinkat(place_.directory.get(), name, 0);
}

void Door::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "uptier-live");
  // If there is no memory to wait with, nobody is answered any more.
  finishes([&] {
    while (await()) {
      for (Client& c : clients_) {
        if (!finishes([&] { serve(c); })) c.leaves = true;
      }
      clients_.remove_if([](const Client& c) { return c.leaves; });
      finishes([&] { let_in(); });
    }
  });
}

// Waits until there is something to do, a second at most if there are clients. Returns false at the
// end.
bool Door::await() {
  const bool deaf = now_ns() < deaf_until_ns_;
  std::vector<pollfd> all{{stop_.get(), POLLIN, 0}, {deaf ? -1 : socket_.get(), POLLIN, 0}};
  for (const Client& c : clients_) {
    const int events = c.out.empty() ? POLLIN : POLLOUT;
    all.push_back({c.fd.get(), static_cast<short>(events), 0});
  }
  const bool idle = clients_.empty() && !deaf;
  if (::poll(all.data(), all.size(), idle ? -1 : 1000) < 0) return errno == EINTR;
  size_t at = 2;
  for (Client& c : clients_) c.revents = all[at++].revents;
  assert(at == all.size());
  return all[0].revents == 0;
}

void Door::let_in() {
  if (now_ns() < deaf_until_ns_) return;
  OwnFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    const bool none = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (!none) deaf_until_ns_ = now_ns() + kDeafNs;
    return;
  }
  std::string why = stranger(fd.get());
  if (why.empty() && clients_.size() == kMostClients) {
    why = std::to_string(kMostClients) + " others are watching this process, no more may: end one";
  }
  if (!why.empty()) return send_away(fd.get(), why);
  Client& c = clients_.emplace_back();
  c.fd = std::move(fd);
  c.since_ns = now_ns();
}

void Door::serve(Client& c) {
  const uint64_t silence = now_ns() - c.since_ns;
  if (silence > (c.out.empty() ? limits_.idle_ns : limits_.patience_ns)) c.leaves = true;
  if (c.leaves || c.revents == 0) return;
  if (!c.out.empty()) {
    write(c);
    answer_words(c);
  } else {
    take_words(c);
  }
}

void Door::take_words(Client& c) {
  char bytes[64];
  const ssize_t n = ::recv(c.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    c.leaves = true;
    return;
  }
  c.asked.append(bytes, static_cast<size_t>(n));
  answer_words(c);
}

// Answers as many requests as the client takes the answers of.
void Door::answer_words(Client& c) {
  while (c.out.empty() && !c.leaves && !c.asked.empty()) {
    const std::string_view word = std::string_view(c.asked).substr(0, kAskTime.size());
    if (!kAskTime.starts_with(word)) {
      send_away(c.fd.get(), "the only request is \"time\"");
      c.leaves = true;
    }
    if (c.leaves || word != kAskTime) return;
    c.asked.erase(0, word.size());
    c.out = answer_of_now();
    c.since_ns = now_ns();
    write(c);
  }
}

void Door::write(Client& c) {
  const ssize_t n =
      ::send(c.fd.get(), c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    c.leaves = errno != EAGAIN && errno != EINTR;
    return;
  }
  c.sent += static_cast<size_t>(n);
  c.since_ns = now_ns();
  if (c.sent < c.out.size()) return;
  c.out.clear();
  c.sent = 0;
}

const std::string& Door::answer_of_now() {
  if (now_ns() >= fresh_until_ns_) {
    const uint64_t begin = thread_cpu_ns();
    fresh_ = answer_(of_);
    fresh_until_ns_ = now_ns() + std::max(kFreshNs, kRest * (thread_cpu_ns() - begin));
  }
  return fresh_;
}

}  // namespace uptier::tiering
