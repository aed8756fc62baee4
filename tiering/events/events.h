// Events: the one path for all events in the runtime (uptier/events.h).
//
//   emit() --number--> listeners, at once     the runtime's own: part of the state, read under its lock
//                 \--> queue --deliver()--> subscribers, later, with no lock held
//   GuestEvents::push() --> ring ---/
//
// The law: a record is emitted once, where the state changes and under the lock that guards it, so
// numbers are in the order of the changes. (Descriptions, compilations and pauses of the worker
// have no such lock; these records take a number of their own.) Numbering and queueing are one step
// under mutex_, a leaf. deliver() takes everything up to a number, merges the records of guest
// threads that saw no higher number, and calls the subscribers in that order. One thread delivers
// at a time. Another one that comes leaves its records to it: the delivering thread looks again
// before it stops, so nothing is left over.
//
// Nothing is queued, copied or timed unless a subscriber wants the kind.
//
//   Thread: any, except where a function says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tiering/events/event_queue.h"
#include "tiering/events/guest_ring.h"
#include "tiering/events/subscribers.h"
#include "uptier/events.h"
#include "uptier/result.h"
#include "uptier/thread_safety.h"

namespace uptier::tiering {

// A part of the runtime's state that is made from records. It receives each one at once, in order,
// under the state mutex; `text` and `decision` belong to the emitter. It must not emit.
class EventListener {
 public:
  virtual void hear(const Event& e) noexcept = 0;

 protected:
  ~EventListener() = default;
};

class GuestEvents;

class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Registers a listener for these kinds, which are emitted with only the state mutex held. Both
  // live as long as this is used. Call it before the first record.
  void listen(EventListener& l, EventKinds kinds);
  // Sets a function `wake(of)` that is called when there is something to deliver. It must take no
  // lock and not wait, because guest threads and holders of any lock call it. Call it before the
  // first record.
  void set_wake(void (*wake)(void*) noexcept, void* of) { wake_ = wake, wake_of_ = of; }

  // ---- Emitting ---------------------------------------------------------------------------------

  // Numbers a record and passes it on. The caller holds the lock that guards the change. Cost: an
  // increment if the kind is not wanted.
  void emit(const Event& e) noexcept {
    bool wanted = (interest_.load(std::memory_order_relaxed) & kinds_of(e.kind)) != 0;
    // Relaxed: it is only a number; code that needs the change itself takes a lock.
    wanted ? emit_slow(e) : void(sequence_.fetch_add(1, std::memory_order_relaxed));
  }
  // Numbers a record that wanted() has just said to be unwanted.
  void count_unwanted() noexcept { sequence_.fetch_add(1, std::memory_order_relaxed); }
  // Emits a record and delivers all that is queued. The worker reports its pause this way, since
  // the report must not wake it. The caller holds no lock.
  void emit_here(const Event& e) noexcept;
  // Says whether a subscriber wants a kind, for emitters whose data is costly to get.
  bool wanted(EventKind k) const noexcept {
    return (subscribed_.load(std::memory_order_relaxed) & kinds_of(k)) != 0;
  }
  // Returns the number of the last record.
  uint64_t last() const noexcept { return sequence_.load(std::memory_order_relaxed); }

  // ---- Guest threads ----------------------------------------------------------------------------

  // Lets a thread push, until it is removed or its GuestEvents is destroyed; its records are still
  // delivered then. Called by the thread itself. Throws if memory runs out.
  void add_thread(GuestEvents& t, uint32_t number);
  void remove_thread(GuestEvents& t) noexcept;

  // ---- Delivering -------------------------------------------------------------------------------

  // Delivers all that is queued, unless another thread does. The caller holds no lock. Does nothing
  // in a subscriber, which is called from here. Cost: one load if nothing is queued.
  void deliver() noexcept {
    if (pending_.load(std::memory_order_relaxed)) deliver_slow();
  }
  // The same, and waits for another delivering thread: all records emitted before have been
  // delivered then.
  void deliver_all() noexcept;
  // Says whether the calling thread is in a subscriber.
  bool in_subscriber() const noexcept {
    return delivering_.load(std::memory_order_relaxed) &&
           deliverer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // Refuses calls that a subscriber must not make. `call`: the name of the function.
  Status check_change(const char* call) const;

  // ---- Subscribers ------------------------------------------------------------------------------

  // Returns the number of the last record that the subscriber does not receive. Errors:
  // kInvalidArgument if it is already subscribed.
  Result<uint64_t> subscribe(EventSubscriber& who, EventKinds kinds);
  // Ends a subscription; see Runtime::unsubscribe. Errors: kNotFound.
  Status unsubscribe(EventSubscriber& who);

 private:
  friend class GuestEvents;
  struct Listening {
    EventListener* listener;
    EventKinds kinds;
  };
  // A thread's ring, and whether the thread may push.
  struct OfThread {
    GuestEvents* thread;  // null: it has detached; this is removed when the ring is empty
    std::unique_ptr<GuestRing> ring;
    uint32_t number, native_number;
  };

  void emit_slow(const Event& e) noexcept;
  Event queue_numbered(Event e) noexcept;
  void tell_drainer() noexcept;
  void deliver_slow() noexcept;
  void deliver_round() noexcept;
  std::vector<WaitingEvent> take_all() UPTIER_REQUIRES(mutex_);
  void take_rings(uint64_t upto, std::vector<WaitingEvent>& to) UPTIER_REQUIRES(mutex_);
  bool guests_wanted() const noexcept;
  static void make_ring(OfThread& t);
  void show_ring(const OfThread& t) const noexcept;
  void change_kinds() noexcept UPTIER_REQUIRES(mutex_);

  std::vector<Listening> listeners_;
  EventKinds heard_ = 0;  // by the listeners
  std::atomic<EventKinds> interest_{0}, subscribed_{0};
  std::atomic<uint64_t> sequence_{0};
  void (*wake_)(void*) noexcept = nullptr;
  void* wake_of_ = nullptr;

  CheckedLock<std::mutex> mutex_;  // a leaf
  EventQueue queue_ UPTIER_GUARDED_BY(mutex_);
  uint64_t queued_ UPTIER_GUARDED_BY(mutex_) = 0;  // the last queued number
  std::vector<OfThread> threads_ UPTIER_GUARDED_BY(mutex_);
  Subscribers subscribers_;  // only call() and await_call() work without mutex_

  // Something was queued, pushed or removed since the drainer last looked. It and delivering_ are
  // seq_cst where one is written and then the other is read: see deliver_slow().
  std::atomic<bool> pending_{false};
  std::atomic<bool> delivering_{false};
  std::atomic<uint64_t> delivered_{0};  // everything queued up to here
  std::atomic<std::thread::id>
      deliverer_{};  // relaxed: only the thread itself can find its own id here
};

// A guest thread records with this: nothing while no subscriber wants it.
class GuestEvents {
 public:
  GuestEvents() = default;
  ~GuestEvents();
  GuestEvents(const GuestEvents&) = delete;
  GuestEvents& operator=(const GuestEvents&) = delete;

  // Records an event: kEntered or kLeft, with a static text. Takes no lock and allocates nothing.
  // Cost: a load if it is not wanted. Called by the thread itself.
  void push(const Event& e) noexcept {
    // Acquire pairs with show_ring(): the ring is complete.
    if (GuestRing* ring = ring_.load(std::memory_order_acquire)) push_slow(*ring, e);
  }

 private:
  friend class Events;
  void push_slow(GuestRing& ring, Event e) noexcept;

  Events* events_ = nullptr;
  std::atomic<GuestRing*> ring_{nullptr};  // null while kEntered and kLeft are not wanted
};

}  // namespace uptier::tiering
