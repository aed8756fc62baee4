#include "jit/code/copy_code.h"

#include <cassert>
#include <cstring>
#include <vector>

namespace uptier::jit {
namespace {

// The distances by which each part and the poll words have moved.
struct Moved {
  ptrdiff_t hot, cold, polls;
};

ptrdiff_t bytes_between(const void* from, const void* to) {
  return static_cast<ptrdiff_t>(reinterpret_cast<uintptr_t>(to) -
                                reinterpret_cast<uintptr_t>(from));
}

ptrdiff_t change_of(const PlaceField& f, bool cold, const Moved& moved) {
  ptrdiff_t own = cold ? moved.cold : moved.hot;
  switch (f.what()) {
    case PlaceField::To::kOutside: return -own;
    case PlaceField::To::kPoll: return moved.polls - own;
    case PlaceField::To::kOtherPart: return (cold ? moved.hot : moved.cold) - own;
  }
  return 0;
}

// The copy lies in the same region, so every target stays within reach.
void add_to_field(uint8_t* at, ptrdiff_t change) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  value += static_cast<uint32_t>(change);
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

Result<std::unique_ptr<Code>> copy_code(CodeSpace& space, CodeRoom& room, const Code& from,
                                        std::span<PollWord> polls) {
  assert(space.moves() && polls.size() == from.polls().size());
  uint32_t hot = from.hot_size(), cold = from.size() - hot;
  Result<CodeSpan> span = space.allocate(room, hot, cold);
  if (!span) return span.error();
  uint8_t* to = span->writable();
  std::memcpy(to, from.base(), hot);
  if (cold != 0) std::memcpy(to + hot, from.cold_base(), cold);
  Moved moved{bytes_between(from.base(), span->data()),
              bytes_between(from.cold_base(), span->cold_data()),
              bytes_between(from.polls().data(), polls.data())};
  for (const PlaceField& f : from.tables().place_fields) {
    add_to_field(to + f.offset, change_of(f, f.offset >= hot, moved));
  }
  if (Status s = space.publish(*span); !s) return s.error();
  auto copy =
      std::make_unique<Code>(std::move(*span), from.entry_offset(), from.tables(), from.method());
  copy->set_serial(from.serial());
  copy->set_polls(polls);
  return copy;
}

// Moves a's bytes to b's place, as copy_code would, and compares.
bool same_bytes(const Code& a, const Code& b) {
  assert(a.polls().empty() && b.polls().empty());
  const uint32_t hot = a.hot_size(), cold = a.size() - hot;
  if (b.hot_size() != hot || b.size() != a.size()) return false;
  if (a.tables().place_fields != b.tables().place_fields) return false;
  std::vector<uint8_t> moved(a.base(), a.base() + hot);
  moved.insert(moved.end(), a.cold_base(), a.cold_base() + cold);
  const Moved by{bytes_between(a.base(), b.base()), bytes_between(a.cold_base(), b.cold_base()), 0};
  for (const PlaceField& f : a.tables().place_fields) {
    add_to_field(moved.data() + f.offset, change_of(f, f.offset >= hot, by));
  }
  return std::memcmp(moved.data(), b.base(), hot) == 0 &&
         std::memcmp(moved.data() + hot, b.cold_base(), cold) == 0;
}

}  // namespace uptier::jit
