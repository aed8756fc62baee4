// profile_calls.h: the calls in a profile: callers, callees, numbers of calls, the order of first
// calls, and the time of call paths.
//
// Rule: merge is associative and commutative, and saturates. This data never changes what a program
// computes. Call sites are used to match a method that was edited (profile/algebra/match.h). The
// graph decides in which sequence the hot methods of a saved profile are compiled, and so which lie
// together; the order decides it for the other methods that are compiled before their first calls.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_time.h"

namespace uptier {

// Things in a body that can be recognized after an edit. The numbers are part of the file format.
enum class AnchorKind : uint8_t {
  kCall = 1,      // target: hash of the callee's name
  kIndirectCall,  // target: hash of the signature's text
  kHostCall,      // target: hash of the host function's name
  kProbe,         // target: the kind and tag of the host's probe
  kLoop,          // 0
};

// Returns the hash of a callee's name in an Anchor: FNV-1a. Files hold it, so it never changes.
constexpr uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// One place in a body.
struct Anchor {
  AnchorKind kind = AnchorKind::kCall;
  uint64_t target = 0;
  SiteId block = 0;  // the block that contains it
  SiteId site = 0;   // of the call or the probe; for a loop its id + 1

  // Returns true if both stand for the same thing, at whatever place.
  bool same(const Anchor& other) const { return kind == other.kind && target == other.target; }
  friend bool operator==(const Anchor&, const Anchor&) = default;
  friend auto operator<=>(const Anchor&, const Anchor&) = default;
};

// Lists of sites, stored one after the other; fewer than 2^32 sites in all. They compare like
// vectors of vectors.
class SiteLists {
 public:
  SiteLists() = default;
  SiteLists(std::initializer_list<std::initializer_list<SiteId>> lists) {
    for (const auto& list : lists) {
      add_list();
      for (const SiteId site : list) add(site);
    }
  }

  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  size_t sites() const { return sites_.size(); }  // in all lists
  std::span<const SiteId> operator[](size_t list) const {
    return std::span(sites_).subspan(begin_of(list), ends_[list] - begin_of(list));
  }
  size_t begin_of(size_t list) const { return list == 0 ? 0 : ends_[list - 1]; }

  void reserve(size_t lists) { ends_.reserve(lists); }
  // Adds an empty list.
  void add_list() { ends_.push_back(static_cast<uint32_t>(sites_.size())); }
  // Adds a site to the last list.
  void add(SiteId site) {
    sites_.push_back(site);
    ++ends_.back();
  }

  friend bool operator==(const SiteLists&, const SiteLists&) = default;
  friend std::strong_ordering operator<=>(const SiteLists& a, const SiteLists& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const auto x = a[i], y = b[i];
      const auto order =
          std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
      if (order != 0) return order;
    }
    return a.size() <=> b.size();
  }

 private:
  std::vector<SiteId> sites_;
  std::vector<uint32_t> ends_;  // end of each list, in sites_
};

// The parts of a body that help to find it again after it has changed.
struct CodeShape {
  uint64_t cfg_hash = 0;
  SiteLists successors;         // list i: of the block with site i + 1, in the order of its edges
  std::vector<Anchor> anchors;  // in build order

  bool empty() const { return successors.empty(); }
  friend bool operator==(const CodeShape&, const CodeShape&) = default;
  friend auto operator<=>(const CodeShape&, const CodeShape&) = default;
};

// When a method was called first: the sum over runs of its position (from 0) among all first calls
// of the run, and the number of these runs.
struct FirstCall {
  uint64_t positions = 0;
  uint64_t runs = 0;  // in thousandths, so that it can be scaled

  // Returns the mean position.
  double mean() const {
    return runs == 0 ? 0 : 1000.0 * static_cast<double>(positions) / static_cast<double>(runs);
  }
  friend bool operator==(const FirstCall&, const FirstCall&) = default;
};

// The calls of a profile: the shape of each method's code, the estimated calls of each pair, and the
// order of first calls.
struct CallProfile {
  static constexpr uint64_t kOneRun = 1000;  // of FirstCall::runs

  using Call = std::pair<MethodKey, MethodKey>;  // caller, callee

  std::map<MethodKey, CodeShape> shapes;
  std::map<Call, uint64_t> graph;        // estimated calls
  std::map<MethodKey, FirstCall> first;  // methods that were called
  TimeProfile time;                      // of call paths, if stacks were sampled

  bool empty() const { return shapes.empty() && graph.empty() && first.empty() && time.empty(); }

  // Sums calls, positions and times. If both sides have a method's shape, the greater is kept.
  CallProfile& operator+=(const CallProfile& other);
  CallProfile& operator+=(CallProfile&& other);  // moves the parts that only `other` has
  // Multiplies calls, positions, runs and times, rounding towards 0; entries that become 0 are removed.
  void scale(uint64_t numerator, uint64_t denominator);

  // Returns the methods by mean position; for equal positions, the lesser key first.
  std::vector<MethodKey> order() const;

  friend bool operator==(const CallProfile&, const CallProfile&) = default;
};

}  // namespace uptier
