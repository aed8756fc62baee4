// quorum.h: limits the influence of single hosts on a sum of many hosts' profiles.
//
// A fleet needs two rules, so that no single host decides what all of them compile, and nothing
// that only a single host has seen is published:
//
//   cap      the runs of one voter count as at most `cap` runs: if there are more, each is multiplied
//            by cap / runs. A function of the set of inputs: their order does not matter, nor does
//            the grouping of the scaled inputs; but a sum of separately capped sums differs from the
//            capped sum
//   quorum   data seen by fewer than n voters is not published: methods are removed with their shapes
//            and first calls, calls between methods are removed, inlined bodies are removed (also
//            those of a removed root), entries of tables move into `other`. A finishing step on the
//            whole sum: it does not commute with merge (two sums may each lack data that both
//            together would have kept). Counts of sites stay, since a cleared block would not be
//            unknown but wrong
//
// Laws, each with a test: votes do not depend on the order of voters; finish with a and then b
// equals finish with the greater; finish with 0 or 1 changes nothing that was voted for; no count
// of a kept method changes except `other`, and mass stays.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

using uptier::CallProfile;
using uptier::InlinedBodies;
using uptier::InlinedKey;
using uptier::MethodKey;
using uptier::MethodProfile;
using uptier::Profile;
using uptier::Table;

// One input of a sum.
struct Contribution {
  std::string voter;  // a host, or a file that names none
  uint64_t runs = 0;
};

// A factor of at most 1.
struct Fraction {
  uint64_t numerator = 1;
  uint64_t denominator = 1;

  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// Returns the factor of each contribution: 1, or cap / runs if its voter has more runs than `cap`;
// a cap of 0 means no cap.
std::vector<Fraction> cap_factors(std::span<const Contribution> inputs, uint64_t cap);

class Quorum {
 public:
  struct Report {
    uint64_t methods = 0;  // methods removed
    uint64_t inlined = 0;  // bodies removed
    uint64_t entries = 0;  // entries moved into `other`
    uint64_t calls = 0;    // calls between methods removed
  };

  // Counts the observations of a method. All data of one voter must come in succession.
  void see(uint32_t voter, const MethodProfile& method);
  void see(uint32_t voter, const InlinedBodies& bodies);
  void see(uint32_t voter, const CallProfile& calls);

  // Keeps the part of a sum that at least `least` voters saw. Methods that nobody voted for are
  // removed, unless `least` is 0.
  Report finish(Profile& sum, uint64_t least) const;
  // The same for calls, after methods have been removed; of a method's shapes that enough voters
  // have seen, the greatest is kept. Returns how many calls were removed.
  uint64_t finish(CallProfile& calls, const Profile& kept, uint64_t least) const;

 private:
  struct Votes {
    uint32_t count = 0;
    uint32_t last = UINT32_MAX;

    void add(uint32_t voter) {
      count += last != voter ? 1 : 0;
      last = voter;
    }
  };
  struct Seen {
    Votes votes;
    std::map<std::tuple<SlotKind, SiteId, TableKey>, Votes> entries;

    // Moves entries of a site's table that fewer than `least` saw into `other`; returns how many.
    uint64_t take_out(std::pair<SlotKind, SiteId> site, Table& table, uint64_t least,
                      uint64_t& other, uint64_t& other_estimate) const;
    uint64_t take_out(MethodProfile& m, uint64_t least) const;
  };

  const Seen& seen_of(const MethodProfile& m) const;

  std::map<std::pair<MethodKey, uint64_t>, Seen>
      seen_;  // by CFG hash: other code has separate votes
  std::map<std::pair<InlinedKey, std::vector<uint64_t>>, Seen> inlined_;  // likewise
  std::map<CallProfile::Call, Votes> calls_;
  std::map<MethodKey, std::map<CodeShape, Votes>> shapes_;
};

}  // namespace uptier::profile
