// upf/profile_sum.h: sums profile files without making a Profile of each.
//
// Law: the sum is that of merge() over the profiles, in any order; a run is in it once. Where a
// method meets a sum of the same schema that is all counts, words are added as they lie in the
// file; the schema is then known from its bytes. All others take the way through MethodProfile.
//
// Cost: of the fast way a decode and an addition a word, and nothing that allocates. Files have
// methods in one order, so each sum remembers which one came after it. Estimates that are the
// counts, word by word, are added once and written out at the end. Sums whose words cannot reach
// 2^63 are added without a test.
//
// A sum may be made range by range, each from all files, where the whole has no room:
//
//     limit(first key, bytes) -> add all files -> drain -> limit(end of the range, bytes) -> ...
//
// Whatever exceeds the bytes loses its greatest methods, and the range ends at the least of them;
// what follows is not taken any more. So each method of the range has met all files, and the ranges
// together are the sum, method by method the same as made at once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "profile/upf/info_sum.h"
#include "profile/upf/read.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// How a profile counts in a sum: its numbers times numerator / denominator.
struct Weight {
  uint64_t numerator = 1;
  uint64_t denominator = 1;

  bool is_one() const { return numerator == denominator; }
};

class ProfileSum {
 public:
  ProfileSum() = default;
  ProfileSum(const ProfileSum&) = delete;
  ProfileSum& operator=(const ProfileSum&) = delete;

  // Adds one method. Malformed ones are counted in the report's `dropped`. Returns false if a profile
  // was left out, this one or what was there.
  bool add(const MethodView& view, std::string_view name, Weight weight = {});
  void add(MethodProfile method, Weight weight = {});
  void add(CallProfile calls, Weight weight = {});
  void add(InlinedBodies bodies, Weight weight = {});
  // Adds all that a segment holds. Under a limit what is in it beside methods belongs to the first
  // range; `keys` has one for each of its groups then, and is the same for each range.
  void add(UpfReader& file, const UpfReader::Segment& segment, Weight weight = {},
           std::span<GroupKeys> keys = {});

  // Adds what a trace of the file has come to, a run.
  void add_trace(UpfReader& file, ByteSpan trace, Weight weight = {});
  // Adds those of all its traces that were not added already.
  void add_traces(UpfReader& file);

  // Adds another sum, which is empty afterwards. The range is what both have.
  void absorb(ProfileSum& other);

  // Makes it a sum of a range, before anything is added. A sum takes 8 bytes a word and some
  // hundred a method, and more where there are tables.
  void limit(const MethodKey& from, uint64_t bytes);
  // Returns where the range ends, and the next one begins; nothing where this one was the last.
  const std::optional<MethodKey>& end() const { return range_.end; }
  // Returns whether there are other ranges, and a file was met whose methods are in an order, broken or
  // named so that ranges would not be the same. All has to be summed at once then.
  bool refuses_ranges() const { return refuses_ && (again() || range_.end); }
  // Hands over the methods in order, one in memory at a time; none are left afterwards.
  void drain(const std::function<void(MethodProfile)>& take);

  ProfileInfo info() const { return infos_.total(); }
  const CallProfile& calls() const { return calls_; }
  const ForeignTables& foreign() const { return foreign_; }
  MergeReport report() const;
  // Returns the sum, and is empty afterwards.
  Profile take();

 private:
  struct Known {
    Bytes desc;
    uint16_t format = 0;  // of its desc
    uint32_t version = 0;
    bool plain = false;  // all words are counts of their own; else the fast way is closed
    bool same = false;   // the estimates are the counts, and are not up to date
    bool bare = false;   // it is stripped: the sum has no slots, and no estimates that are counts
    uint64_t bound = 0;  // no word of the sum is greater
    MethodProfile* sum = nullptr;
    Known* next = nullptr;  // came after this one the last time
  };
  // What was lost with one method.
  struct Lost {
    MethodKey key;
    uint64_t saturated = 0;
    size_t dropped = 0;
  };

  Known* find_known(const MethodKey& key);
  void add_rest(UpfReader& file, const UpfReader::Segment& segment, Weight weight);
  void add_view(const MethodView& view, std::string_view name, Weight weight);
  void add_method(MethodProfile method, Weight weight);
  bool add_words(const MethodView& view, std::string_view name, Known& known);
  void know(const MethodKey& key, const MethodView& view);
  void settle(Known& known);

  // Ranges.
  bool again() const { return range_.from != MethodKey{}; }
  void strip(Known& known);
  void restore(Known& known);
  uint64_t bytes_of(const MethodKey& key) const;
  uint64_t other_bytes_of(const MethodKey& key) const;
  void keep_within_limit() {
    if (bytes_ > limit_) make_room();
  }
  void make_room();
  void cut(MethodKey end);
  bool book(const MethodKey& key, uint64_t saturated, size_t dropped);
  void unite_ranges(ProfileSum& other);
  bool absorb_known(ProfileSum& other, Known& theirs);

  Profile sum_;
  std::map<MethodKey, Known> known_;  // its nodes stay where they are
  Known* last_ = nullptr;
  InfoSum infos_;
  CallProfile calls_;
  ForeignTables foreign_;  // have no weight
  MergeReport report_;

  // Under a limit:
  bool limited_ = false;
  bool lean_ = false;  // methods are stripped
  KeyRange range_;
  uint64_t limit_ = UINT64_MAX;
  uint64_t bytes_ = 0;      // of the methods
  std::vector<Lost> lost_;  // of them; not in report_
  bool refuses_ = false;
};

}  // namespace uptier::profile
