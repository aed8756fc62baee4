// TickList: which methods a tick looks at.
//
//   few methods                             all of them, each time
//   many: did something in its last kBusy   each time
//         looks
//         the others                        in turns, each every kTurns ticks
//
// In a large program thousands of methods have been called often once, and a look at one costs as
// many cache misses as it has threads, and more. What a method has done since it was last looked at
// adds up, so turns lose nothing: what wakes up is only seen kTurns ticks later, at most.
//
//   Thread: the runtime's state mutex guards it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uptier::tiering {

class TickList {
 public:
  static constexpr size_t kFew = 256;
  static constexpr uint32_t kBusy = 8;
  static constexpr uint32_t kTurns = 16;

  // Takes the place of a method that is not in the list.
  void add(uint32_t place) { entries_.push_back({place, 0}); }
  void erase(uint32_t place) {
    std::erase_if(entries_, [&](const Entry& e) { return e.place == place; });
  }

  // Calls `look(place)` for those that are due, in the order in which they were added. It returns
  // whether the method has done something since it was last looked at.
  template <typename Look>
  void tick(Look look) {
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
    uint32_t idle;  // looks in a row that found nothing, up to kBusy
  };
  std::vector<Entry> entries_;
  uint32_t ticks_ = 0;
};

}  // namespace uptier::tiering
