// upf/profile_sum.h: sums profile files without making a Profile of each.
//
// Law: the sum equals merge() over the profiles, in any order; a run is in it once. If a method
// meets a sum of the same schema with only plain counts, words are added directly from the file;
// the schema is recognized by its bytes. All others go through MethodProfile.
//
// Cost: the fast path takes a decode and an addition for each word, and does not allocate. Files
// have methods in one order, so each sum remembers which one came after it. Estimates that equal
// the counts, word by word, are added once and written out at the end. Sums whose words cannot
// reach 2^63 are added without a test.
//
// If there is no memory for the whole sum, it may be made range by range, each from all files:
//
//     limit(first key, bytes) -> add all files -> drain -> limit(end of the range, bytes) -> ...
//
// If a range exceeds the bytes, the methods with the greatest keys are removed, and the range ends
// at the least of these; later methods are not added any more. So each method of the range has met
// all files, and the ranges together are the sum, method by method the same as if made at once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "profile/upf/info_sum.h"
#include "profile/upf/read.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// The weight of a profile in a sum: its numbers times numerator / denominator.
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

  // Adds one method. Malformed ones are counted in the report's `dropped`. Returns false if a
  // profile was left out, either this one or the earlier sum.
  bool add(const MethodView& view, std::string_view name, Weight weight = {});
  void add(MethodProfile method, Weight weight = {});
  void add(CallProfile calls, Weight weight = {});
  void add(InlinedBodies bodies, Weight weight = {});
  // Adds a whole segment. Under a limit, its data other than methods belongs to the first range;
  // `keys` then has one element for each of its groups, and must be the same for each range.
  void add(UpfReader& file, const UpfReader::Segment& segment, Weight weight = {},
           std::span<GroupKeys> keys = {});

  // Adds the profile of a trace in the file, as a run.
  void add_trace(UpfReader& file, ByteSpan trace, Weight weight = {});
  // Adds those of its traces that were not added before.
  void add_traces(UpfReader& file);

  // Adds another sum, which is empty afterwards. The range becomes the intersection.
  void absorb(ProfileSum& other);

  // Makes it the sum of a range, before anything is added. A sum takes 8 bytes for each word, some
  // hundred for each method, and more if there are tables.
  void limit(const MethodKey& from, uint64_t bytes);
  // Returns the end of the range, where the next one begins; nothing if this was the last one.
  const std::optional<MethodKey>& end() const { return range_.end; }
  // Returns whether there are several ranges, and the order, damage or names of methods in some
  // file would make the ranges differ from the sum. Then everything must be summed at once.
  bool refuses_ranges() const { return refuses_ && (again() || range_.end); }
  // Passes the methods on in order, one in memory at a time; none are left afterwards.
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
    bool plain = false;  // all words are plain counts; otherwise the fast path is closed
    bool same = false;   // the estimates equal the counts, and are not up to date
    bool bare = false;   // stripped: the sum has no slots, and no estimates that equal counts
    uint64_t bound = 0;  // upper bound of all words of the sum
    MethodProfile* sum = nullptr;
    Known* next = nullptr;  // the one that came after this one the last time
  };
  // The losses of one method.
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
  std::map<MethodKey, Known> known_;  // its nodes are stable
  Known* last_ = nullptr;
  InfoSum infos_;
  CallProfile calls_;
  ForeignTables foreign_;  // they have no weight
  MergeReport report_;

  // Under a limit:
  bool limited_ = false;
  bool lean_ = false;  // methods are stripped
  KeyRange range_;
  uint64_t limit_ = UINT64_MAX;
  uint64_t bytes_ = 0;      // of the methods
  std::vector<Lost> lost_;  // of the methods; not in report_
  bool refuses_ = false;
};

}  // namespace uptier::profile
