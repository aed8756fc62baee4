// plan_relay: decides which bodies of code are moved together, so that pages become free.
//
// New code is placed wherever there is room. As versions come and go, pages fill with holes. With
//
//   holes    the share of unused lines, in pages with code
//
// the bodies of pages that are less than kFullPage full move into one row of lines, for one of
// these reasons:
//
//   room     a compilation was refused for lack of room
//   holes    holes >= Options::relay_holes, in at least kLeastPages pages with code
//
// The bodies of the emptiest pages move first, as many as fit most_bytes. Nothing moves unless at
// least kLeastGain pages become free.
//
// Pure: the same snapshot gives the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uptier::tiering {

// The place of a body in the code space: cache lines, counted from the first page's first line.
struct PlacedBody {
  uint32_t hot_line = 0, hot_lines = 0;
  uint32_t cold_line = 0, cold_lines = 0;  // none if the body has no separate cold part
};

struct RelaySnapshot {
  std::vector<PlacedBody> bodies;   // movable bodies
  std::vector<uint8_t> lines_used;  // by page, of all code
  uint64_t most_bytes = 0;          // limit of the bytes to move
  bool room_wanted = false;
};

enum class RelayWhy : uint8_t { kNone, kRoom, kHoles, kStress };

struct RelayPlan {
  RelayWhy why = RelayWhy::kNone;
  std::vector<uint32_t> order;  // bodies, in their new order
  uint64_t hot_lines = 0, cold_lines = 0;
  // Pages with code, now and after the moves.
  uint32_t pages_before = 0, pages_after = 0;
  double holes = 0;

  std::string text() const;
};

struct RelayOptions {
  double holes = 0.5;  // Options::relay_holes
};

inline constexpr uint32_t kLeastPages = 16;
inline constexpr uint32_t kLeastGain = 4;  // pages
inline constexpr double kFullPage = 0.75;  // of a page's lines

RelayPlan plan_relay(const RelaySnapshot& s, const RelayOptions& o);
// Moves all bodies, for the stress plan.
RelayPlan relay_all(const RelaySnapshot& s);

}  // namespace uptier::tiering
