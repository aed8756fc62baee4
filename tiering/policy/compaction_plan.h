// plan_relay: which code is laid anew side by side, and in which order.
//
// Code is placed where there is room when it is made. In the course of time what runs lies between
// what was called once, between holes, and far from what it calls. With
//
//   holes    the share of the lines of pages that hold code which nothing lies in
//   core     the hottest bodies that make up kCoreShare of all weight
//   near     the share of the calls between bodies that lead into a page that the caller is in
//
// bodies are laid anew, where kLeastPages pages hold code (order: of the core), because of
//
//   room     a compilation was refused, and holes would do: those of the emptiest pages
//   holes    holes >= relay_holes: those of pages that are fuller than kFullPage are left where they are
//   order    the core lies in kSpread times as many pages as it would, or near would be kNearer more:
//            all that has weight
//
// in the order of call-chain clusters (profile/data/cluster_calls.h), the densest first, as many as fit
// most_bytes. For room and holes at least kLeastGain pages would be free afterwards.
//
// A pure function; the same snapshot gives the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/data/cluster_calls.h"

namespace uptier::tiering {

// What a body takes of the code space: lines of the caches, counted from the first page's.
struct PlacedBody {
  uint32_t hot_line = 0, hot_lines = 0;
  uint32_t cold_line = 0, cold_lines = 0;  // none: no part apart
  double weight = 0;                       // how much it runs; 0: not that anybody knows
};

struct RelaySnapshot {
  std::vector<PlacedBody> bodies;      // that can be moved
  std::vector<profile::CallArc> arcs;  // by their numbers
  std::vector<uint8_t> lines_used;     // by page, of all code
  uint64_t most_bytes = 0;             // that may be moved
  bool room_wanted = false;
};

enum class RelayWhy : uint8_t { kNone, kRoom, kHoles, kOrder };

struct RelayPlan {
  RelayWhy why = RelayWhy::kNone;
  std::vector<uint32_t> order;  // bodies, as they are to lie
  uint64_t hot_lines = 0, cold_lines = 0;
  // Pages that hold code, and those that would; and the same of the core's hot parts.
  uint32_t pages_before = 0, pages_after = 0;
  uint32_t core_before = 0, core_after = 0;
  double holes = 0;
  double near_before = 0, near_after = 0;

  std::string text() const;
};

struct RelayOptions {
  double holes = 0.5;  // Options::relay_holes
};

inline constexpr double kCoreShare = 0.9;
inline constexpr uint32_t kLeastPages =
    16;                                    // what lies in fewer is in reach of the first TLB anyway
inline constexpr uint32_t kLeastGain = 4;  // pages
inline constexpr double kFullPage = 0.75;  // of a page's lines
inline constexpr double kSpread = 2;
inline constexpr double kNearer = 0.25;

RelayPlan plan_relay(const RelaySnapshot& s, const RelayOptions& o);
// Lays all bodies anew, for the stress plan.
RelayPlan relay_all(const RelaySnapshot& s);

}  // namespace uptier::tiering
