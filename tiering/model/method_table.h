// MethodTable: finds the method of an id, or of an index.
//
// A place has an index, and with it a stub, a cell and words in every thread's context. Places are
// reused; the generation in an id tells their methods apart. Each place has three words, written
// under the runtime's state mutex and read without it:
//
//   method       the latest method there; never null again once it was set
//   id           its number while it is in service, else MethodId::none()
//   generation   the highest that has been given out
//
// A thread that reads `id` and finds its own id there may use the method: a removed method lives
// until no thread can have found it (Reclaimer::leave). places.h describes the reuse of its place.
//
//   Thread: functions that change the table, and all(): under the state mutex; everything else: any.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampler/reservation.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "uptier/ids.h"

namespace uptier::tiering {

class MethodTable {
 public:
  // Makes room for `capacity` places; call it once, before anything else. Returns false if there is
  // no memory. A place that was never used costs address space only, 16 bytes.
  bool reserve(uint32_t capacity);

  // The number of places that were ever used.
  uint32_t size() const { return size_.load(std::memory_order_acquire); }  // pairs with put()
  // The method at a place that was used, in service or not.
  Method& at(uint32_t index) const {
    assert(index < size());
    return *methods_[index].load(std::memory_order_acquire);  // pairs with put()
  }
  // Says whether the id may be one given to put(): its place and generation were given out.
  bool has_had(MethodId m) const {
    return m.valid() && m.index() < size() &&
           m.generation() <= generations_[m.index()].load(std::memory_order_relaxed);
  }
  // Says whether a method with this id was put in and not taken out. Reads no Method.
  bool serves(MethodId m) const {
    // Acquire pairs with put() and take_out().
    return has_had(m) && ids_[m.index()].load(std::memory_order_acquire) == m.number();
  }
  // The same for a place, whatever the generation.
  bool serves(uint32_t index) const {
    return MethodId(ids_[index].load(std::memory_order_acquire)).valid();
  }
  // The id of the latest method of a place.
  MethodId latest(uint32_t index) const {
    return MethodId(index, generations_[index].load(std::memory_order_relaxed));
  }
  // Returns a method, in service or not, or null if its place was given to another.
  Method* known(MethodId m) const;

  // All methods that own places, by index.
  std::span<const std::unique_ptr<Method>> all() const { return owned_; }
  // Makes room for one more, so that put() needs no memory.
  void make_room() {
    assert(owned_.size() == size());
    if (owned_.size() == owned_.capacity()) owned_.reserve(2 * owned_.size() + 16);
  }
  // Puts a method into the place of its id: a new place at the end, or one whose old method is no
  // longer used by any thread. The old method is destroyed. The caller has made the new one ready
  // for calls.
  void put(std::unique_ptr<Method> m) UPTIER_REQUIRES(state_lock);
  // From here on the id is not in service. The method stays.
  void take_out(const Method& m);
  // Destroys all methods; no thread uses any.
  void clear() { owned_.clear(); }

 private:
  // Zero pages until they are written.
  sampler::Reservation memory_;
  std::atomic<Method*>* methods_ = nullptr;
  std::atomic<uint32_t>* ids_ = nullptr;
  std::atomic<uint32_t>* generations_ = nullptr;
  std::atomic<uint32_t> size_{0};
  std::vector<std::unique_ptr<Method>> owned_;  // by index
};

}  // namespace uptier::tiering
