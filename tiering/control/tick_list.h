// TickList: decides which methods a tick looks at.
//
//   few methods                             all of them, each time
//   many: active in its last kBusy looks    each time
//         the others                        in turns, each every kTurns ticks
//
// In a large program thousands of methods were called often at some time, and a look at one costs a
// cache miss per thread and more. The activity since the last look adds up, so turns lose nothing:
// a method that becomes active again is only seen up to kTurns ticks later.
//
//   Thread: the runtime's state mutex guards it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tiering/base/state_lock.h"

namespace uptier::tiering {

class TickList {
 public:
  static constexpr size_t kFew = 256;
  static constexpr uint32_t kBusy = 8;
  static constexpr uint32_t kTurns = 16;

  // Adds the place of a method that is not in the list.
  void add(uint32_t place) UPTIER_REQUIRES(state_lock) { entries_.push_back({place, 0}); }
  void erase(uint32_t place) UPTIER_REQUIRES(state_lock) {
    std::erase_if(entries_, [&](const Entry& e) { return e.place == place; });
  }

  // Calls `look(place)` for the places that are due, in the order of their addition. It returns
  // whether the method was active since the last look.
  template <typename Look>
  void tick(Look look) UPTIER_REQUIRES(state_lock) {
    ++ticks_;
    bool many = entries_.size() > kFew;
    for (Entry& e : entries_) {
      assert(e.idle <= kBusy);
      bool due = e.idle < kBusy || (e.place + ticks_) % kTurns == 0;
      if (many && !due) continue;
      bool did = look(e.place);
      e.idle = did ? 0 : e.idle + (e.idle < kBusy);
    }
  }

 private:
  struct Entry {
    uint32_t place;
    uint32_t idle;  // looks in a row without activity, up to kBusy
  };
  std::vector<Entry> entries_;
  uint32_t ticks_ = 0;
};

}  // namespace uptier::tiering
