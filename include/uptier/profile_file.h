// profile_file.h: profiles that outlive the process (`.upf`).
//
// Law: a file is a list of segments, each a profile with the runs that it sums up. Reading a file
// sums its segments, so `cat a.upf b.upf > c.upf` is a file, and a run is counted once: a segment
// whose runs are all in the sum already adds nothing. docs/profiles.md has the format.
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

// Names what one run has written: when it did, and a hash of it.
struct UploadId {
  uint64_t time = 0;  // Unix time, seconds
  uint64_t hash = 0;

  friend bool operator==(const UploadId&, const UploadId&) = default;
  friend auto operator<=>(const UploadId&, const UploadId&) = default;
};

// Where a profile comes from. Merged like the profiles: numbers are summed, lists united, of texts
// and times the greatest is kept, of different intervals 0.
struct ProfileInfo {
  static constexpr size_t kMaxUploads = 1024;
  static constexpr uint64_t kRunWeight = 1000;

  std::string engine;             // name and version
  std::string host;               // name of the machine
  std::string schedule;           // how it was sampled, in text
  uint64_t time = 0;              // Unix time, seconds, of the latest run
  uint64_t runs = 0;              // how many are summed up
  uint64_t weight = 0;            // what they count for, kRunWeight each until they are scaled
  uint64_t interval = 0;          // mean calls between sampled ones; 0 is unknown or mixed
  std::vector<uint64_t> modules;  // keys of the modules that ran, ascending
  std::vector<UploadId> uploads;  // the runs, ascending; at most kMaxUploads, the latest
  uint64_t forgotten = 0;         // runs that this was not enough for

  ProfileInfo& operator+=(const ProfileInfo& other);
  friend bool operator==(const ProfileInfo&, const ProfileInfo&) = default;
};

// An instrument that another tool has left in a file, in the layout of IREE's database.
struct ForeignInstrument {
  std::string type;                // e.g. "iree.instrument.counter"
  std::string stage;               // that asks for it; never kQueryStage, which is ours
  std::string scope_hash;          // of the code that it stands in
  std::string scope_key;           // its place there
  std::string metadata;            // JSON, or empty
  std::vector<std::byte> payload;  // what it has seen

  friend bool operator==(const ForeignInstrument&, const ForeignInstrument&) = default;
  // By the texts, then by the payload's size, then by its bytes.
  friend std::strong_ordering operator<=>(const ForeignInstrument& a, const ForeignInstrument& b);
};

// Bytes that another tool has left, which it alone understands.
struct ForeignData {
  std::string type;
  std::string metadata;
  std::vector<std::byte> data;

  friend bool operator==(const ForeignData&, const ForeignData&) = default;
  friend auto operator<=>(const ForeignData&, const ForeignData&) = default;
};

// All that other tools have left. Merged: of an instrument with the same five texts counters of one
// word are summed, saturating, and ranges as the ranges of a profile; all else is kept once, byte
// for byte. They have no runs, so no weight, decay or scale changes them.
struct ForeignTables {
  std::set<ForeignInstrument> instruments;
  std::set<ForeignData> data;

  bool empty() const { return instruments.empty() && data.empty(); }
  // Associative and commutative. O(log n) for each that is added.
  void add(ForeignInstrument instrument);
  ForeignTables& operator+=(const ForeignTables& other);
  friend bool operator==(const ForeignTables&, const ForeignTables&) = default;
};

// What a file holds, and what is wrong with it.
struct ProfileFile {
  Profile profile;
  ProfileInfo info;
  CallProfile calls;
  ForeignTables foreign;
  MergeReport report;
  bool truncated = false;             // it ends early; `profile` holds what precedes
  std::vector<std::string> warnings;  // what was skipped and why, with offsets; the first ones
  uint64_t skipped = 0;               // how many there were
  uint64_t unknown = 0;  // chunks of an unknown type or version: passed over, and no damage
};

// Returns whether bytes start like a profile file (or like a part of one that lost its header).
bool looks_like_profile(std::span<const std::byte> file);

// Reads a profile file from memory. Damaged parts are left out with a warning, unknown ones are
// passed over. Fails, with offset and rule, for what is no profile file at all. An empty file is an empty profile; a
// database of IREE's tools is one with foreign tables, and counts once as a run does.
Result<ProfileFile> profile_from_file(std::span<const std::byte> file);

// Returns the file of a profile: one segment. Malformed methods and inlined bodies (see their
// `check`), and those beyond 32 MiB, are left out; `dropped` (may be null) receives their number.
//
//   log    the decisions of the run, in text, or empty
//   calls  what is known of calls, or null
std::vector<std::byte> profile_to_file(const Profile& profile, const ProfileInfo& info,
                                       std::string_view log = {}, uint64_t* dropped = nullptr,
                                       const CallProfile* calls = nullptr);

// Returns the file of all that was read or summed: profile, provenance, calls and foreign tables.
std::vector<std::byte> profile_to_file(const ProfileFile& file);

}  // namespace uptier
