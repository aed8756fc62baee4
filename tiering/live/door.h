// Door: the socket on which a process answers, and the thread that answers.
//
//   listens --connect--> client --asks--> an answer is made --written--> client may ask again
//
// A client is sent away, with a line that says why, if it is not of this process's user, if there
// are kMostClients already, or if it says anything but the one request. It is dropped if it takes
// nothing of an answer, or asks nothing, for longer than Limits says.
//
// Law: the door changes nothing. Its thread asks for a finished text (the only time that it may
// take a lock), and holds no lock while it reads or writes. No socket ever blocks it: the rest of
// an answer waits in the client's buffer. So the destructor waits for one answer to be made at
// most. An answer is given again for kFreshNs, or for kRest times the processor time
// that it took, so clients cannot keep the process busy.
//
// In the child of a fork the door has no thread. The child must not destroy it.
//
//   Thread: open and destroy it anywhere. The rest runs on its own thread, which blocks all
//   signals.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tiering/live/own_fd.h"
#include "tiering/live/socket_place.h"
#include "uptier/result.h"

struct pollfd;

namespace uptier::tiering {

class Door {
 public:
  static constexpr size_t kMostClients = 4;
  static constexpr uint64_t kFreshNs = 50'000'000;
  static constexpr uint64_t kRest = 20;

  // How long a client may take nothing of an answer, and ask nothing.
  struct Limits {
    uint64_t patience_ns = 5'000'000'000;
    uint64_t idle_ns = 120'000'000'000;
  };

  // Makes the text of an answer, on the door's thread. May throw std::bad_alloc.
  using Answer = std::string (*)(const void* of);

  // Listens at a place (Options::listen, not empty). `of` outlives the door. Errors: kIo,
  // kInvalidArgument, kResourceExhausted.
  static Result<std::unique_ptr<Door>> open(std::string_view listen, Answer answer, const void* of,
                                            const Limits& limits);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  const std::string& path() const { return place_.shown; }

 private:
  struct Client {
    OwnFd fd;
    std::string asked;      // what came and was not answered yet
    std::string out;        // the answer that is being written; empty: none
    size_t sent = 0;        // bytes of it that were written
    uint64_t since_ns = 0;  // when it last asked, or took something
    bool leaves = false;    // it is to be dropped
    short revents = 0;      // of the last poll
  };

  Door(SocketPlace place, Answer answer, const void* of, const Limits& limits)
      : place_(std::move(place)), answer_(answer), of_(of), limits_(limits) {}

  Status listen();
  Status start();
  void run() noexcept;
  bool await();
  void let_in();
  void serve(Client& c);
  void take_words(Client& c);
  void answer_words(Client& c);
  void write(Client& c);
  const std::string& answer_of_now();
  void remove_socket() const;

  const SocketPlace place_;
  const Answer answer_;
  const void* const of_;
  const Limits limits_;
  OwnFd socket_, stop_;
  ino_t inode_ = 0;  // of the socket's file
  pthread_t thread_ = {};
  bool runs_ = false;

  // Of the thread.
  std::list<Client> clients_;
  std::string fresh_;  // the last answer
  uint64_t fresh_until_ns_ = 0;
  uint64_t deaf_until_ns_ = 0;  // nobody is let in before
};

}  // namespace uptier::tiering
