// upf/merge.h: sums profile files without making a Profile of each.
//
// Law: the sum is that of merge() over the profiles, in any order; a run is in it once. Where a
// method meets a sum of the same schema that is all counts, words are added as they lie in the
// file; the schema is then known from its bytes. All others take the way through MethodProfile.
//
// Cost: of the fast way a decode and an addition a word, and nothing that allocates. Files have
// methods in one order, so each sum remembers which one came after it. Estimates that are the
// counts, word by word, are added once and written out at the end. Sums whose words cannot reach
// 2^63 are added without a test.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "profile/upf/read.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// What becomes of an upload when several are summed.
enum class UploadFate : uint8_t {
  kSummed,    // none of its runs is in the sum, or it names none
  kKnown,     // all of them are: it adds nothing
  kConflict,  // some are, so neither adding it nor leaving it out would be right
};

// Decides for each; those with more runs go first, of equal ones the first. A pure function.
std::vector<UploadFate> plan_uploads(std::span<const ProfileInfo* const> uploads);

// Returns the segments of a file that are summed, ascending. One that shares some runs with others
// is left out with a warning.
std::vector<size_t> summed_segments(UpfReader& file);

// How a profile counts in a sum: its numbers times numerator / denominator.
struct Weight {
  uint64_t numerator = 1;
  uint64_t denominator = 1;

  bool is_one() const { return numerator == denominator; }
};

// The sum of many: as +=, but each is added log(n) times, so that n lists of one are not united
// with a growing one n times.
class InfoSum {
 public:
  void add(ProfileInfo info);
  ProfileInfo total() const;

 private:
  std::vector<std::optional<ProfileInfo>> levels_;  // of 2^level each
};

class ProfileSum {
 public:
  ProfileSum() = default;
  ProfileSum(const ProfileSum&) = delete;
  ProfileSum& operator=(const ProfileSum&) = delete;

  // Adds one method. Malformed ones are counted in the report's `dropped`.
  void add(const MethodView& view, std::string_view name, Weight weight = {});
  void add(MethodProfile method, Weight weight = {});
  void add(CallProfile calls, Weight weight = {});
  void add(InlinedBodies bodies, Weight weight = {});
  // Adds all that a segment holds.
  void add(UpfReader& file, const UpfReader::Segment& segment, Weight weight = {});

  // Adds what a trace of the file has come to, a run.
  void add_trace(UpfReader& file, ByteSpan trace, Weight weight = {});
  // Adds those of all its traces that were not added already.
  void add_traces(UpfReader& file);

  // Adds another sum, which is empty afterwards.
  void absorb(ProfileSum& other);

  ProfileInfo info() const { return infos_.total(); }
  const CallProfile& calls() const { return calls_; }
  const ForeignTables& foreign() const { return foreign_; }
  const MergeReport& report() const { return report_; }
  // Returns the sum, and is empty afterwards.
  Profile take();

 private:
  struct Known {
    Bytes desc;
    uint16_t format = 0;  // of its desc
    uint32_t version = 0;
    bool plain = false;  // all words are counts of their own; else the fast way is closed
    bool same = false;   // the estimates are the counts, and are not up to date
    uint64_t bound = 0;  // no word of the sum is greater
    MethodProfile* sum = nullptr;
    Known* next = nullptr;  // came behind this one the last time
  };

  Known* find_known(const MethodKey& key);
  bool add_words(const MethodView& view, std::string_view name, Known& known);
  void know(const MethodKey& key, const MethodView& view);
  void settle(Known& known);

  Profile sum_;
  std::map<MethodKey, Known> known_;  // its nodes stay where they are
  Known* last_ = nullptr;
  InfoSum infos_;
  CallProfile calls_;
  ForeignTables foreign_;  // have no weight
  MergeReport report_;
};

}  // namespace uptier::profile
