// streams.h: streams, their subscribers, and the delivery of notifications.
//
// Each (stream, kind) has an immutable list of subscriptions, reached by an atomic pointer. A
// notification reads the pointer once and calls those subscriptions in the list that are alive.
// Subscribing and unsubscribing publish another list. Old lists are freed when no thread can be
// reading them.
//
// Pairs stay whole. A begin takes the next instance number. A subscription is born at a number far
// ahead, and once its list is published, the numbers jump there. So a begin with a greater number
// finds the subscription, and the subscription is told of exactly those begins, and of their ends.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracing/dispatcher/threads.h"
#include "uptier/thread_safety.h"
#include "uptier/tracing.h"

namespace uptier::tracing {

struct Subscription {
  uptier_trace_callback callback;
  void* user;
  uint64_t born;  // it is told of greater instances only
  std::atomic<bool> alive = true;
};

using List = std::vector<Subscription*>;

struct Stream : uptier_trace_stream {
  std::string name;
  uint32_t major = 0, minor = 0;
  std::array<std::atomic<const List*>, UPTIER_TRACE_KINDS> lists{};
  // Each (parent, event) that was notified as a graph; guarded by the mutex of Streams.
  std::vector<std::pair<uptier_trace_event*, uptier_trace_event*>> graphs;
};

// Thread: any. notify, begin and end take no lock and allocate nothing, except for graphs.
class Streams {
 public:
  ~Streams();

  // Throws std::bad_alloc, as do subscribe and listen.
  Stream* stream(const char* name, uint32_t major, uint32_t minor);

  // Time and thread of an event; 0: now, the calling thread.
  struct When {
    uint64_t at_ns = 0, thread = 0;
  };
  void notify(Stream& s, uptier_trace_type type, uptier_trace_event* parent,
              uptier_trace_event* event, const void* data, When when = {0, 0}) noexcept;
  uint64_t begin(Stream& s, uint32_t kind, uptier_trace_event* parent, uptier_trace_event* event,
                 const void* data, When when = {0, 0}) noexcept;
  void end(Stream& s, uint32_t kind, uptier_trace_event* parent, uptier_trace_event* event,
           uint64_t instance, const void* data, When when = {0, 0}) noexcept;

  bool subscribe(Stream& s, uint32_t kind, uptier_trace_callback callback, void* user);
  // Ends the subscriptions of all streams if `s` is null, and of all kinds if `kind` is 0.
  bool unsubscribe(Stream* s, uint32_t kind, uptier_trace_callback callback, void* user);
  bool listen(uptier_trace_listener listener, void* user);
  bool unlisten(uptier_trace_listener listener, void* user);

  // Ends the subscriptions and listeners with code in [from, to). Returns their number.
  size_t drop_code(uintptr_t from, uintptr_t to);

  // Dropped notifications: there were too many threads, or callbacks were nested too deeply.
  uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Found {
    Stream* stream;
    uint32_t kind;
    uptier_trace_callback callback;
    void* user;
  };
  struct Listener {
    uptier_trace_listener tell;
    void* user;
  };
  // Freed when no thread can be reading it.
  struct Retired {
    std::unique_ptr<const List> list;
    std::unique_ptr<Subscription> subscription;
    Threads::Moment moment;
  };

  // While one exists, the lists that the calling thread reads are not freed.
  class Visit {
   public:
    explicit Visit(Streams& streams) noexcept;
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    bool ok() const noexcept { return slot_ != nullptr; }
    void call(const Subscription& s, const uptier_trace_record& record) const noexcept;
    void call(const List* list, const uptier_trace_record& record) const noexcept;

   private:
    Streams& streams_;
    Slot* slot_;
  };

  static constexpr uint64_t kAhead = 1ull << 32;

  void deliver(const Stream& s, const uptier_trace_record& record) noexcept;
  void deliver_graph(Stream& s, uptier_trace_event* parent, uptier_trace_event* event,
                     const void* data, When when) noexcept;
  // Returns the subscriptions for which `wanted` is true.
  template <typename Wanted>
  std::vector<Found> find(Wanted wanted);
  bool end_one(const Found& f);
  // Publishes a list. Subscribers and listeners are not told here.
  void publish(Stream& s, uint32_t kind, std::unique_ptr<const List> list,
               std::unique_ptr<Subscription> gone) UPTIER_REQUIRES(mutex_);
  void reclaim() UPTIER_REQUIRES(mutex_);

  Threads threads_;
  std::atomic<uint64_t> instances_ = 0;
  std::atomic<uint64_t> lost_ = 0;
  CheckedLock<std::mutex> mutex_;              // lists, streams_, graphs
  CheckedLock<std::recursive_mutex> telling_;  // held while listeners are told; taken before mutex_
  std::vector<std::unique_ptr<Stream>> streams_ UPTIER_GUARDED_BY(mutex_);
  std::vector<Listener> listeners_ UPTIER_GUARDED_BY(telling_);
  std::vector<std::unique_ptr<Retired>> retired_ UPTIER_GUARDED_BY(mutex_);
};

}  // namespace uptier::tracing
