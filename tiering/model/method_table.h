// MethodTable: which method an id, or an index, is.
//
// A place has an index, and by that a stub, a cell and words in every thread's context. It goes from
// method to method; the generation in an id tells them apart. Three words a place, each written under
// the runtime's state mutex and read without:
//
//   method       the latest method there; never null again once it was set
//   id           its number while it is in service, else MethodId::none()
//   generation   the highest that has been given out
//
// A thread that reads `id` and finds its own id there may use the method: a method that was taken out
// lives until no thread can have found it (Reclaimer::leave). places.h says what happens to its place
// then.
//
//   Thread: what changes the table, and all(), under the state mutex; everything else any.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "tiering/model/method.h"
#include "uptier/ids.h"

namespace uptier::tiering {

class MethodTable {
 public:
  // Makes room for `capacity` places, once, before all else. Returns false if memory is refused. A
  // place that no method has had costs address space only, 16 bytes.
  bool reserve(uint32_t capacity);

  // The number of places that a method has had.
  uint32_t size() const { return size_.load(std::memory_order_acquire); }  // pairs with put()
  // The method at a place that has had one, in service or not.
  Method& at(uint32_t index) const {
    assert(index < size());
    return *methods_[index].load(std::memory_order_acquire);  // pairs with put()
  }
  // Returns whether the id may be one that put() was given: its place and generation were given out.
  bool has_had(MethodId m) const {
    return m.valid() && m.index() < size() &&
           m.generation() <= generations_[m.index()].load(std::memory_order_relaxed);
  }
  // Returns whether a method with this id was put in and not taken out. Reads no Method.
  bool serves(MethodId m) const {
    // Acquire pairs with put() and take_out().
    return has_had(m) && ids_[m.index()].load(std::memory_order_acquire) == m.number();
  }
  // The same of a place, whatever the generation.
  bool serves(uint32_t index) const {
    return MethodId(ids_[index].load(std::memory_order_acquire)).valid();
  }
  // The id that the latest method of a place has, or had.
  MethodId latest(uint32_t index) const {
    return MethodId(index, generations_[index].load(std::memory_order_relaxed));
  }
  // Returns a method, in service or not, or null when its place has gone to another.
  Method* known(MethodId m) const;

  // All methods that places belong to, by index.
  std::span<const std::unique_ptr<Method>> all() const { return owned_; }
  // Makes room for one more, so that put() is not refused it.
  void make_room() {
    assert(owned_.size() == size());
    if (owned_.size() == owned_.capacity()) owned_.reserve(2 * owned_.size() + 16);
  }
  // Gives a method the place of its id: a new place at the end, or one whose method nobody can have
  // any more. That method is destroyed. The caller has made the new one ready for calls.
  void put(std::unique_ptr<Method> m);
  // From here on the id is nobody's. The method stays.
  void take_out(const Method& m);
  // Destroys all methods: nobody has any.
  void clear() { owned_.clear(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  // Zeroed by calloc(), which does not touch what the kernel has zeroed.
  template <typename T>
  using Words = std::unique_ptr<std::atomic<T>[], Free>;

  Words<Method*> methods_;
  Words<uint32_t> ids_, generations_;
  std::atomic<uint32_t> size_{0};
  std::vector<std::unique_ptr<Method>> owned_;  // by index
};

}  // namespace uptier::tiering
