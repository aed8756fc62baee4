// Events: the one door for whatever happens in the runtime (uptier/events.h).
//
//   emit() --number--> listeners, at once     the runtime's own: part of the state, read under its lock
//                 \--> queue --deliver()--> subscribers, later, with no lock held
//   GuestEvents::push() --> ring ---/
//
// The law: a record is emitted once, where the state changes and under the lock that guards it, so
// numbers are in the order of the changes. (What is described or compiled, and when the worker pauses,
// no such lock guards; these take a number of their own.) Numbering and queueing are one step under
// mutex_, a leaf. deliver() takes everything up to a number, sorts in what guest threads have seen up
// to it, and calls the subscribers in that order. One thread at a time does so. Another one that comes
// leaves its records to it: who delivers looks again before it stops, so nothing is left behind.
//
// Nothing is queued, copied or timed unless a subscriber wants the kind.
//
//   Thread: any, as said below.
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

// A part of the runtime's state that is made of records. It hears each one at once, in order, under the
// state mutex; `text` and `decision` are the emitter's. It must not emit.
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

  // Has a listener hear these kinds, which are emitted with the state mutex held alone. Both live as
  // long as this is used. Before the first record.
  void listen(EventListener& l, EventKinds kinds);
  // Has `wake(of)` called when there is something to deliver. It must take no lock and not wait, since
  // guest threads and holders of any lock call it. Before the first record.
  void set_wake(void (*wake)(void*) noexcept, void* of) { wake_ = wake, wake_of_ = of; }

  // ---- Emitting ---------------------------------------------------------------------------------

  // Numbers a record and hands it on. The caller holds the lock that guards what has changed. Cost: an
  // increment for what nobody wants.
  void emit(const Event& e) noexcept {
    bool wanted = (interest_.load(std::memory_order_relaxed) & kinds_of(e.kind)) != 0;
    // Relaxed: a number alone; whoever must see what it stands for takes a lock.
    wanted ? emit_slow(e) : void(sequence_.fetch_add(1, std::memory_order_relaxed));
  }
  // Emits a record and delivers what there is: the worker's way to say that it pauses, which must not
  // wake it. The caller holds no lock.
  void emit_here(const Event& e) noexcept;
  // Whether a subscriber wants a kind: for emitters that would have to find out what to say.
  bool wanted(EventKind k) const noexcept {
    return (subscribed_.load(std::memory_order_relaxed) & kinds_of(k)) != 0;
  }
  // Returns the number of the last record.
  uint64_t last() const noexcept { return sequence_.load(std::memory_order_relaxed); }

  // ---- Guest threads ----------------------------------------------------------------------------

  // A thread may push from here on, until it is removed or its GuestEvents destroyed. What it has
  // pushed is delivered all the same. The thread's own call. Throws where memory is refused.
  void add_thread(GuestEvents& t, uint32_t number);
  void remove_thread(GuestEvents& t) noexcept;

  // ---- Delivering -------------------------------------------------------------------------------

  // Delivers what there is, unless another thread does. The caller holds no lock. Nothing in a
  // subscriber, which is being called by this. Cost: one load where there is nothing.
  void deliver() noexcept {
    if (pending_.load(std::memory_order_relaxed)) deliver_slow();
  }
  // The same, and waits for another thread that delivers: what was emitted before has been delivered.
  void deliver_all() noexcept;
  // Whether the calling thread is in a subscriber.
  bool in_subscriber() const noexcept {
    return delivering_.load(std::memory_order_relaxed) &&
           deliverer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // Refuses what a subscriber may not call. `call`: its name.
  Status check_change(const char* call) const;

  // ---- Subscribers ------------------------------------------------------------------------------

  // Returns the number of the last record that the subscriber does not receive. Errors:
  // kInvalidArgument when it is subscribed already.
  Result<uint64_t> subscribe(EventSubscriber& who, EventKinds kinds);
  // Ends that; see Runtime::unsubscribe. Errors: kNotFound.
  Status unsubscribe(EventSubscriber& who);

 private:
  friend class GuestEvents;
  struct Listening {
    EventListener* listener;
    EventKinds kinds;
  };
  // A thread's ring, and whether the thread may push.
  struct OfThread {
    GuestEvents* thread;  // null: it has gone, and so will this when the ring is empty
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
  EventKinds heard_ = 0;  // by listeners
  std::atomic<EventKinds> interest_{0}, subscribed_{0};
  std::atomic<uint64_t> sequence_{0};
  void (*wake_)(void*) noexcept = nullptr;
  void* wake_of_ = nullptr;

  CheckedLock<std::mutex> mutex_;  // a leaf
  EventQueue queue_ UPTIER_GUARDED_BY(mutex_);
  uint64_t queued_ UPTIER_GUARDED_BY(mutex_) = 0;  // the last number that was
  std::vector<OfThread> threads_ UPTIER_GUARDED_BY(mutex_);
  Subscribers subscribers_;  // call() and await_call() alone go without mutex_

  // Something was queued, pushed or removed since the drainer last looked. It and delivering_ are
  // seq_cst where one is written and then the other is read: see deliver_slow().
  std::atomic<bool> pending_{false};
  std::atomic<bool> delivering_{false};
  std::atomic<uint64_t> delivered_{0};  // all that was queued up to here
  std::atomic<std::thread::id>
      deliverer_{};  // relaxed: only a thread itself finds its own id there
};

// What a guest thread records with: nothing while nobody wants to know.
class GuestEvents {
 public:
  GuestEvents() = default;
  ~GuestEvents();
  GuestEvents(const GuestEvents&) = delete;
  GuestEvents& operator=(const GuestEvents&) = delete;

  // Records something: kEntered or kLeft, whose text is static. Takes no lock and allocates nothing.
  // Cost: a load while nobody wants it. The thread's own call.
  void push(const Event& e) noexcept {
    // Acquire pairs with show_ring(): the ring has been made.
    if (GuestRing* ring = ring_.load(std::memory_order_acquire)) push_slow(*ring, e);
  }

 private:
  friend class Events;
  void push_slow(GuestRing& ring, Event e) noexcept;

  Events* events_ = nullptr;
  std::atomic<GuestRing*> ring_{nullptr};  // null while kEntered and kLeft are not wanted
};

}  // namespace uptier::tiering
