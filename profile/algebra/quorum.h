// quorum.h: who has a say in a sum of many hosts' profiles, and how much.
//
// Two rules, which a fleet needs so that no single host decides what all of them compile, and
// nothing that a single host has seen gets out:
//
//   cap      the runs of one voter count as `cap` runs at most: each is weighed by cap / runs where
//            there are more. A function of the set of inputs: their order is free, and so is the
//            grouping of the weighed inputs, but sums that were capped apart are not the sum capped
//   quorum   what fewer than n voters saw is not told: methods go, with their shapes and first
//            calls, calls from one to another go, inlined bodies go (also those of a root that
//            went), entries of tables move into `other`. A finishing
//            step, on the whole sum: it does not commute with merge (two sums may each lack what
//            both together would have kept). Counts of sites stay, since a block that is cleared
//            would not be unknown but wrong
//
// Laws, each with a test: votes do not depend on the order of voters; finish with a and then b is
// finish with the greater; finish with 0 or 1 changes nothing that was voted for; no count of a
// kept method but `other` changes, and mass stays.
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

// Returns the factor of each contribution: 1, or cap / runs where its voter has more runs than
// `cap`; a cap of 0 is none.
std::vector<Fraction> cap_factors(std::span<const Contribution> inputs, uint64_t cap);

class Quorum {
 public:
  struct Report {
    uint64_t methods = 0;  // that went
    uint64_t inlined = 0;  // bodies that went
    uint64_t entries = 0;  // that moved into `other`
    uint64_t calls = 0;    // between methods, that went
  };

  // Counts what was seen of a method. All that one voter has seen comes in one stretch.
  void see(uint32_t voter, const MethodProfile& method);
  void see(uint32_t voter, const InlinedBodies& bodies);
  void see(uint32_t voter, const CallProfile& calls);

  // Leaves of a sum what at least `least` voters saw. Methods that nobody voted for go, unless
  // `least` is 0.
  Report finish(Profile& sum, uint64_t least) const;
  // The same of calls, once methods have been left out; of a method's shapes the greatest stays
  // that enough have seen. Returns how many calls went.
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

  std::map<std::pair<MethodKey, uint64_t>, Seen> seen_;  // by CFG hash: other code, other votes
  std::map<std::pair<InlinedKey, std::vector<uint64_t>>, Seen> inlined_;  // likewise
  std::map<CallProfile::Call, Votes> calls_;
  std::map<MethodKey, std::map<CodeShape, Votes>> shapes_;
};

}  // namespace uptier::profile
