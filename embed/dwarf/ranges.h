// ranges.h: lists of address ranges, .debug_ranges and .debug_rnglists.
#pragma once

#include <cstdint>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/debug_sections.h"
#include "embed/dwarf/unit.h"

namespace uptier::dwarf {

// Calls `visit(begin, end)` with each range of the list that an attribute names. Errors: kCorruptInput,
// kResourceExhausted.
template <typename Visit>
Status each_range(const Value& list, const Unit& unit, const Sections& s, Budget& budget,
                  Visit visit);

namespace detail {

constexpr const char* kRanges = ".debug_ranges";
constexpr const char* kRnglists = ".debug_rnglists";

template <typename Visit>
Status each_old_range(uint64_t at, const Unit& unit, const Sections& s, Budget& budget,
                      Visit visit) {
  const uint8_t width = unit.encoding.address_size;
  const uint64_t all_ones = width == 4 ? UINT32_MAX : UINT64_MAX;
  uint64_t base = unit.low_pc;
  for (Cursor c(s.ranges, at);;) {
    const uint64_t begin = c.number(width), end = c.number(width);
    if (c.bad()) return broken(kRanges, at, "a list of ranges does not end in its section");
    if (!budget.step()) return too_large();
    if (begin == 0 && end == 0) return {};
    if (begin == all_ones) {
      base = end;
    } else {
      visit(base + begin, base + end);
    }
  }
}

enum Kind : uint8_t {
  kEndOfList = 0,
  kBaseAddressx = 1,
  kStartxEndx = 2,
  kStartxLength = 3,
  kOffsetPair = 4,
  kBaseAddress = 5,
  kStartEnd = 6,
  kStartLength = 7,
};

template <typename Visit>
Status each_new_range(uint64_t at, const Unit& unit, const Sections& s, Budget& budget,
                      Visit visit) {
  const uint8_t width = unit.encoding.address_size;
  uint64_t base = unit.low_pc;
  const auto indexed = [&](uint64_t index) {
    return address_of({Value::kAddressIndex, index, {}}, unit, s);
  };
  for (Cursor c(s.rnglists, at);;) {
    const uint8_t kind = c.u8();
    uint64_t begin = 0, end = 0;
    switch (kind) {
      case kEndOfList: break;
      case kBaseAddressx: base = indexed(c.uleb()); break;
      case kBaseAddress: base = c.number(width); break;
      case kStartxEndx: begin = indexed(c.uleb()), end = indexed(c.uleb()); break;
      case kStartxLength: begin = indexed(c.uleb()), end = begin + c.uleb(); break;
      case kOffsetPair: begin = base + c.uleb(), end = base + c.uleb(); break;
      case kStartEnd: begin = c.number(width), end = c.number(width); break;
      case kStartLength: begin = c.number(width), end = begin + c.uleb(); break;
      default: return broken(kRnglists, at, "an entry of a list of ranges has an unknown kind");
    }
    if (c.bad()) return broken(kRnglists, at, "a list of ranges does not end in its section");
    if (!budget.step()) return too_large();
    if (kind == kEndOfList) return {};
    if (kind != kBaseAddressx && kind != kBaseAddress) visit(begin, end);
  }
}

}  // namespace detail

template <typename Visit>
Status each_range(const Value& list, const Unit& unit, const Sections& s, Budget& budget,
                  Visit visit) {
  if (unit.encoding.version < 5) {
    return detail::each_old_range(list.number, unit, s, budget, visit);
  }
  uint64_t at = list.number;
  if (list.kind == Value::kListIndex) {
    // The base is where the table of offsets begins, and what they are relative to.
    const uint8_t width = unit.encoding.offset_size;
    if (list.number >= s.rnglists.size()) {
      return broken(detail::kRnglists, unit.rnglists_base, "a list of ranges has no such number");
    }
    Cursor c(s.rnglists, unit.rnglists_base + list.number * width);
    at = unit.rnglists_base + c.number(width);
    if (c.bad()) {
      return broken(detail::kRnglists, unit.rnglists_base, "a list of ranges has no such number");
    }
  }
  return detail::each_new_range(at, unit, s, budget, visit);
}

}  // namespace uptier::dwarf
