// profile_file.h: profiles that outlive the process (`.upf`).
//
// Rule: a file is a list of segments; each is a profile, with the list of runs that it sums up.
// Reading a file sums its segments, so `cat a.upf b.upf > c.upf` makes a valid file. A run is
// counted once: a segment adds nothing if all of its runs are already in the sum. docs/profiles.md
// has the format.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"
#include "uptier/result.h"

namespace uptier {

// Identifies a run, so that it is counted once: the time of writing, and a hash.
struct UploadId {
  uint64_t time = 0;  // Unix time, seconds
  uint64_t hash = 0;

  friend bool operator==(const UploadId&, const UploadId&) = default;
  friend auto operator<=>(const UploadId&, const UploadId&) = default;
};

// The origin of a profile. Merged like the profiles: numbers are summed, lists united, the greatest
// of texts and times is kept, and different intervals become 0.
struct ProfileInfo {
  static constexpr size_t kMaxUploads = 1024;
  static constexpr uint64_t kRunWeight = 1000;

  std::string engine;             // name and version
  std::string host;               // the name of the machine
  std::string schedule;           // the sampling schedule, in text
  uint64_t time = 0;              // Unix time, seconds, of the latest run
  uint64_t runs = 0;              // number of runs that are summed up
  uint64_t weight = 0;            // their total weight: kRunWeight each, until scaled
  uint64_t interval = 0;          // mean calls between sampled ones; 0 is unknown or mixed
  std::vector<uint64_t> modules;  // keys of the modules that ran, ascending
  std::vector<UploadId> uploads;  // the runs, ascending; at most kMaxUploads, the latest
  uint64_t forgotten = 0;         // runs that did not fit into `uploads`

  ProfileInfo& operator+=(const ProfileInfo& other);
  friend bool operator==(const ProfileInfo&, const ProfileInfo&) = default;
};

// An instrument that another tool has written to a file, in the layout of IREE's database.
struct ForeignInstrument {
  std::string type;                // e.g. "iree.instrument.counter"
  std::string stage;               // the compiler or tool that queries it; never kQueryStage,
                                   // which is Uptier's
  std::string scope_hash;          // hash of the code that contains it
  std::string scope_key;           // its place there
  std::string metadata;            // JSON, or empty
  std::vector<std::byte> payload;  // its data

  friend bool operator==(const ForeignInstrument&, const ForeignInstrument&) = default;
  // Compares the texts, then the payload's size, then its bytes.
  friend std::strong_ordering operator<=>(const ForeignInstrument& a, const ForeignInstrument& b);
};

// Bytes of another tool, which Uptier does not interpret.
struct ForeignData {
  std::string type;
  std::string metadata;
  std::vector<std::byte> data;

  friend bool operator==(const ForeignData&, const ForeignData&) = default;
  friend auto operator<=>(const ForeignData&, const ForeignData&) = default;
};

// All data of other tools. Merging: for an instrument with the same five texts, counters of one
// word are summed, saturating, and ranges are merged like ranges of a profile; everything else is
// kept once, byte for byte. This data has no runs, so weights, decay and scaling do not change it.
struct ForeignTables {
  std::set<ForeignInstrument> instruments;
  std::set<ForeignData> data;

  bool empty() const { return instruments.empty() && data.empty(); }
  // Associative and commutative. O(log n) per instrument.
  void add(ForeignInstrument instrument);
  // Takes away a counter or range that add() has added; the minimum and maximum of a range stay. An
  // instrument without any count left is removed. Does nothing for other instruments.
  void subtract(const ForeignInstrument& instrument);
  ForeignTables& operator+=(const ForeignTables& other);
  friend bool operator==(const ForeignTables&, const ForeignTables&) = default;
};

// The contents of a file, and the errors in it.
struct ProfileFile {
  Profile profile;
  ProfileInfo info;
  CallProfile calls;
  ForeignTables foreign;
  MergeReport report;
  bool truncated = false;             // the file ends early; `profile` has the part before the end
  std::vector<std::string> warnings;  // skipped parts with reasons and offsets; the first ones
  uint64_t skipped = 0;               // number of skipped parts
  uint64_t unknown = 0;  // chunks of an unknown type or version: passed over, and not an error
};

// Returns true if bytes start like a profile file (or like a part of one that lost its header).
bool looks_like_profile(std::span<const std::byte> file);

// Reads a profile file from memory. Damaged parts are left out with a warning, unknown parts are
// passed over. Fails, with offset and rule, if it is not a profile file at all. An empty file is an
// empty profile. A database of IREE's tools is a profile with foreign tables, and counts once, like
// a run.
Result<ProfileFile> profile_from_file(std::span<const std::byte> file);

// Returns the file of a profile, with one segment. Malformed methods and inlined bodies (see their
// `check`), and those beyond 32 MiB, are left out; `dropped` (may be null) receives their number.
// Throws std::bad_alloc.
//
//   log    the decisions of the run, in text, or empty
//   calls  call data of the profile, or null
std::vector<std::byte> profile_to_file(const Profile& profile, const ProfileInfo& info,
                                       std::string_view log = {}, uint64_t* dropped = nullptr,
                                       const CallProfile* calls = nullptr);

// Returns a file with all data that was read or summed: profile, origin, calls and foreign tables.
std::vector<std::byte> profile_to_file(const ProfileFile& file);

}  // namespace uptier
