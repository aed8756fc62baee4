// profile.h: what was observed of methods, as plain data that merges.
//
// Law: merge is a sum. It is associative and commutative, saturates at 2^64-1 and says so, and
// never adds counts of different schemas. A profile is advice: any counts are legal, also 0, 2^64-1
// and counts that contradict each other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/ids.h"
#include "uptier/result.h"
#include "uptier/trace.h"

namespace uptier {

// What a slot observes. The numbers are part of the file formats.
enum class SlotKind : uint8_t { kBlock = 1, kEdge, kCallTarget, kValue, kLoop, kLog, kCounter };

// Returns "block", "edge", "call_target", "value", "loop", "log", "counter" or "unknown".
std::string_view slot_kind_name(SlotKind kind);

// Where in a slab one site is observed: `words` 8-byte words from `word` on.
struct Slot {
  SlotKind kind = SlotKind::kBlock;
  SiteId site = 0;
  uint32_t word = 0;
  uint32_t words = 1;

  friend bool operator==(const Slot&, const Slot&) = default;
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// The layout of a slab, and the shape of the code that it was made for.
struct Schema {
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kMaxWords = 1u << 20;  // a slab holds at most 8 MiB

  uint32_t version = kVersion;
  uint64_t cfg_hash = 0;  // a profile whose hash is not the code's is stale
  std::vector<Slot> slots;

  // Returns the schema with one word for each of the sites 1..blocks.
  static Schema block_schema(uint32_t blocks, uint64_t cfg_hash);

  // Returns the size of a slab in 8-byte words.
  uint32_t words() const;

  // Fails unless the version is known, slots ascend strictly by (kind, site), no site is 0, every
  // kind has a merge rule (in version 1: block, edge and counter, sums of one word), and slots fill
  // words 0, 1, 2, ... up to at most kMaxWords.
  Status check() const;

  // Returns the slot of a site, or null. O(log slots).
  const Slot* find(SlotKind kind, SiteId site) const;

  friend bool operator==(const Schema&, const Schema&) = default;
  friend auto operator<=>(const Schema&, const Schema&) = default;
};

// Names a method across processes and machines.
struct MethodKey {
  uint64_t module_key = 0;
  uint32_t function_index = 0;

  friend bool operator==(const MethodKey&, const MethodKey&) = default;
  friend auto operator<=>(const MethodKey&, const MethodKey&) = default;
};

// What was observed of one method.
struct MethodProfile {
  MethodKey key;
  std::string name;
  Schema schema;
  std::vector<uint64_t> counts;  // one for each word of the schema
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;  // the calls that `counts` were observed in
  uint64_t interval = 0;       // mean calls between sampled ones; 0 is unknown or mixed

  // Returns how often a site was seen; nothing (not 0) for a site that has no slot.
  std::optional<uint64_t> count(SlotKind kind, SiteId site) const;

  // Fails unless the schema is valid and has as many words as there are counts.
  Status check() const;

  friend bool operator==(const MethodProfile&, const MethodProfile&) = default;
};

// Methods by key. Each is stored under its own key.
struct Profile {
  std::map<MethodKey, MethodProfile> methods;

  // Returns the profile of a method, or null.
  const MethodProfile* find(MethodKey key) const;

  friend bool operator==(const Profile&, const Profile&) = default;
};

// What a merge did. Reports add up with +=.
struct MergeReport {
  uint64_t added = 0;              // methods that only `from` had
  uint64_t merged = 0;             // methods that were summed
  uint64_t saturated = 0;          // counts that stopped at 2^64-1
  std::vector<MethodKey> dropped;  // one entry for each method profile that was left out

  MergeReport& operator+=(const MergeReport& other);
  friend bool operator==(const MergeReport&, const MergeReport&) = default;
};

// Adds `from` to `into`.
//
// Where a method has different schemas, the greater one (as Schema compares: version, hash, slots)
// is kept and the other is dropped, whichever side it is on: the only choices that keep the sum
// associative look at schemas alone. A reader that knows the code drops stale methods beforehand.
// Malformed methods (see check) are dropped. Different intervals become 0, of different names the
// greater is kept.
MergeReport merge(Profile& into, const Profile& from);

// Multiplies every count, calls included, by numerator / denominator, rounding down. Weighs a
// profile before a merge, or decays an old one. Returns how many counts saturated; fails if the
// denominator is 0.
Result<uint64_t> scale(Profile& profile, uint64_t numerator, uint64_t denominator);

// How alike two profiles are.
//
// value = sum over sites of min(a_i / A, b_i / B), where A and B are the sums of all counts: 1 for
// equal shares, 0 where nothing is shared. Two profiles without a count are alike (1); one of them
// without is not (0). The other fields are the shares of A and B, 0..1, in methods that only one
// side has, and in methods whose schemas differ; both add nothing to `value`.
struct Overlap {
  double value = 1;
  double only_a = 0;
  double only_b = 0;
  double mismatched_a = 0;
  double mismatched_b = 0;

  friend bool operator==(const Overlap&, const Overlap&) = default;
};

struct KindOverlap {
  SlotKind kind;
  Overlap overlap;  // A and B are the sums over this kind
};

struct MethodOverlap {
  MethodKey key;
  std::string name;
  bool mismatched = false;  // the schemas differ, so `value` is 0
  double value = 0;         // A and B are the sums over this method
  double share_a = 0;       // of all counts of a
  double share_b = 0;
};

struct OverlapReport {
  Overlap program;
  std::vector<KindOverlap> kinds;      // those that occur, ascending
  std::vector<MethodOverlap> methods;  // those that a or b has, by key
};

// Compares two profiles. Symmetric. O(sites).
OverlapReport compare(const Profile& a, const Profile& b);

// Returns compare(a, b).program.value.
double overlap(const Profile& a, const Profile& b);

// Collects events into a profile: the last data of an id wins, ids of one method are summed.
//
// Events that break the law of trace.h are refused with an error and leave the collection as it
// was. Data in a format of a later version, or about a type, is counted in `skipped` and left out.
class ProfileBuilder {
 public:
  Status add(const TraceEvent& event);

  // Returns the sum of what was collected so far; `report` (may be null) receives what was dropped.
  Profile profile(MergeReport* report = nullptr) const;
  uint64_t skipped() const { return skipped_; }

 private:
  struct Stream {
    uint64_t method = 0;  // handle; 0 for data that is skipped
    Schema schema;
    std::vector<uint64_t> counts;
    FlushEvent pending;  // takes effect with its data
    FlushEvent flushed;
    uint64_t interval = 0;
    bool has_data = false;
  };

  Status add_desc(const InstrumentationDesc& desc);
  Status add_data(const InstrumentationData& data);

  std::map<uint64_t, MethodDetails> details_;
  std::map<uint64_t, Stream> streams_;
  uint64_t interval_ = 0;
  uint64_t skipped_ = 0;
};

// A profile read from a trace file.
struct TraceProfile {
  Profile profile;
  MergeReport report;
  bool truncated = false;  // the file ends early; the profile holds what precedes
  uint64_t skipped = 0;    // events of an unknown kind or format
  uint64_t lost = 0;       // events that the writing runtime could not deliver
};

// Reads a trace file from memory. Fails on corrupt input with offset and rule.
Result<TraceProfile> profile_from_trace(std::span<const std::byte> file);

// Prints a profile as text that parse_profile reads back to an equal profile. Malformed methods
// (see check) become a comment.
std::string to_text(const Profile& profile);

// Parses the text form. Comments run from # to the end of the line; the lines of a method may come
// in any order. Errors name line, column and rule.
//
//     uptier-profile 1
//     method 0x00000000000000a1 7 "fib" {
//       calls 1024
//       sampled 64
//       interval 16
//       cfg 0x0123456789abcdef
//       block 1 64    # kind, site, count
//     }
Result<Profile> parse_profile(std::string_view text);

}  // namespace uptier
