// profile.h: what was observed of methods, as plain data that merges.
//
// Law: merge is associative and commutative, saturates at 2^64-1 and says so, loses no count, and
// never adds counts of different code. A profile is advice: any counts are legal, also 0, 2^64-1 and
// counts that contradict each other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "uptier/ids.h"
#include "uptier/result.h"
#include "uptier/trace.h"

namespace uptier {

// What a slot observes, and the words that it has in MethodProfile::counts. The numbers are part of
// the file formats. Values are signed; wide sums are 128-bit two's complement numbers in two words,
// the low one first. A table counts by key what it has room for, `other` all the rest.
//
// Of a loop, `timed` of the entries were timed, through all their (timed) iterations; squares is
// the sum of cycles^2 over them, and of what brings it to that of single draws: executions that are
// timed in a row are alike (sampler/loop_timer.h). An execution that is being timed is an entry once it is over. Of a
// log, `events` counts those that are lost, too.
enum class SlotKind : uint8_t {
  kBlock = 1,   // [count] of executions
  kEdge,        // [count] of transitions
  kCallTarget,  // [other], and a table of callees
  kValue,       // [count, sum, sum high, min, max, other], and a table of values
  kLoop,        // [entries, iterations, timed, timed iterations, cycles, exclusive cycles,
                //  squares, squares high]
  kLog,         // [events, lost]
  kCounter,     // [count] as the host's add and hit make it
  kRange,       // [count, sum, sum high, min, max] of what the host adds
  kGauge,       // [value] that the host set, unsigned; 0 if never
};

// Returns "block", "edge", "call_target", "value", "loop", "log", "counter", "range", "gauge" or
// "unknown".
std::string_view slot_kind_name(SlotKind kind);

// The positions of the words above, counted from Slot::word.
namespace slot_word {
inline constexpr uint32_t kCount = 0;
inline constexpr uint32_t kGaugeValue = 0;
inline constexpr uint32_t kTargetOther = 0;
inline constexpr uint32_t kSum = 1, kSumHigh = 2, kMin = 3, kMax = 4;  // of value and range
inline constexpr uint32_t kValueOther = 5;
inline constexpr uint32_t kLoopEntries = 0, kLoopIterations = 1, kLoopTimed = 2;
inline constexpr uint32_t kLoopTimedIterations = 3, kLoopCycles = 4, kLoopExclusiveCycles = 5;
inline constexpr uint32_t kLoopSquares = 6, kLoopSquaresHigh = 7;
inline constexpr uint32_t kLogEvents = 0, kLogLost = 1;
}  // namespace slot_word

// Returns how many words a slot of this kind has; 0 for a kind that is not known.
uint32_t slot_words(SlotKind kind);

// Returns whether slots of this kind have a table: call targets and values.
bool has_table(SlotKind kind);

// What is observed at one site, and where: `words` 8-byte words from `word` on.
struct Slot {
  static constexpr uint32_t kDefaultTop = 16;

  SlotKind kind = SlotKind::kBlock;
  SiteId site = 0;
  uint32_t word = 0;
  uint32_t words = 1;
  uint32_t top = 0;  // entries of its table in a slab and in data; 0 for kinds without a table

  friend bool operator==(const Slot&, const Slot&) = default;
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// The layout of counts, and the shape of the code that it was made for.
struct Schema {
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kMaxWords = 1u << 20;  // of data, so an event holds at most 8 MiB

  uint32_t version = kVersion;
  uint64_t cfg_hash = 0;  // a profile whose hash is not the code's is stale
  std::vector<Slot> slots;

  // Returns the schema with one word for each of the sites 1..blocks.
  static Schema block_schema(uint32_t blocks, uint64_t cfg_hash);

  // Appends a slot behind the last word. `top` is taken for kinds with a table only.
  void add(SlotKind kind, SiteId site, uint32_t top = Slot::kDefaultTop);

  // Returns the words of all slots together: the size of MethodProfile::counts.
  uint32_t words() const;

  // Returns the words of an id's data: words(), and two for each table entry. O(slots).
  uint64_t data_words() const;

  // Fails unless the version is known, slots ascend strictly by (kind, site), no site is 0, every
  // kind is known and has its number of words, tables (and nothing else) have a `top`, slots fill
  // words 0, 1, 2, ..., and data takes at most kMaxWords.
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

// What a table counts by: the callee's MethodKey (function index in `value`), or 0 and a value's
// bits.
struct TableKey {
  uint64_t module_key = 0;
  uint64_t value = 0;

  friend bool operator==(const TableKey&, const TableKey&) = default;
  friend auto operator<=>(const TableKey&, const TableKey&) = default;
};

struct TableEntry {
  uint64_t count = 0;
  uint64_t estimate = 0;  // as MethodProfile::estimates

  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

// Tables have no size limit in memory, so that merges lose nothing; see trim.
using Table = std::map<TableKey, TableEntry>;
using Tables = std::map<std::pair<SlotKind, SiteId>, Table>;

// A number that was estimated from samples, and the interval that is meant to hold the true one
// with a probability of 95 % (docs/accuracy.md has how often it does). low <= total <= high.
struct Estimate {
  double total = 0;
  double low = 0;
  double high = 0;

  friend bool operator==(const Estimate&, const Estimate&) = default;
};

// Returns the estimate of a total N of which `count` executions were observed in `samples` sampled
// calls and bursts, and weighted to `estimate`.
//
// With a mean gap of w = estimate / count an execution is observed with probability 1/w. So N^ =
// count * w is the Horvitz-Thompson estimator of N, unbiased, with relative variance
// (1 - 1/w) / count. Executions of one sampled call are observed together or not at all, so no more
// of them are independent than there are samples:
//
//     n_eff = min(count, samples), at least 1
//     low, high = estimate * (1 -+ 1.96 * sqrt((1 - 1/w) / n_eff)), low >= count
//
// Every call observed (w = 1) gives zero width. The interval is for samples of one weight that hold
// an execution each at most, or all as many. Of a method's sites MethodProfile::estimate knows more:
// how many executions a sample holds. And it is about the executions that could have been observed,
// see MethodProfile.
// Source: Horvitz and Thompson, JASA 47 (1952); for calls as clusters of executions, Cochran,
// Sampling Techniques, 3rd ed. (1977), chapter 9.
Estimate estimate_of(uint64_t count, uint64_t estimate, uint64_t samples);

// What was observed of one method.
//
// Observed is code that counts or has a copy that does: baseline code, and optimized code by its
// rare copies. While a method ran in plain optimized code its shares stay what they were, but its
// totals fall behind: an estimate and its interval are then of the part that could be observed,
// and `calls` may be greater than the estimate of the entry block. Even those are not all: code
// that is optimized calls code that is optimized without passing the stub that counts, unless
// gap=exact. Where totals have to be whole, observe in baseline code (policy=never), as the
// overlaps in docs/accuracy.md do.
struct MethodProfile {
  MethodKey key;
  std::string name;
  Schema schema;
  std::vector<uint64_t> counts;     // one for each word of the schema
  std::vector<uint64_t> estimates;  // likewise: sums weighted by the interval in force when they
                                    // were observed, and unless that was 1, brought to the calls
                                    // and iterations that there were; 0 for words that are no sums
  Tables tables;                    // without empty tables and empty entries
  uint64_t calls = 0;               // counted by the stub
  uint64_t sampled_calls = 0;       // the calls that `counts` were observed in
  uint64_t iterations = 0;  // arrivals at loop headers, from outside and from the loop's end
  uint64_t bursts = 0;      // the stretches of iterations that `counts` were observed in
  // Over these calls and bursts, the sum of the square of what each stands for: how unequal their
  // weights are. 0 is not known, as of files from before there was this sum: all alike.
  uint64_t weight_squares = 0;
  uint64_t interval = 0;  // mean calls between sampled ones; 0 is unknown or mixed
  uint64_t time = 0;      // Unix time of the latest run that this is of; 0 is not known

  // Returns how often a site was seen (call targets: `other` and the table; loops: entries);
  // nothing (not 0) for a site that has no slot, and for a gauge.
  std::optional<uint64_t> count(SlotKind kind, SiteId site) const;

  // Returns the words of a slot; empty for a site that has none.
  std::span<const uint64_t> words(SlotKind kind, SiteId site) const;

  // Returns the table of a site, or null where it has no entries.
  const Table* table(SlotKind kind, SiteId site) const;

  // Returns estimate_of what count() returns, but with
  //
  //     n_eff = min(count / together, samples) * min(1, samples * w^2 / weight_squares)
  //     together = 1 + (most - 1) * (p + 3/4 (1 - p)),   p = count / (most * samples)
  //
  // where a sample holds `most` executions of a site at most: those of one site come together, in
  // few bursts rather than many, and tell less. The last factor, with the mean weight w of all
  // blocks and edges, is that of samples that stand for very different numbers, as they do where
  // rates adapt (docs/notes/0038). O(slots).
  //
  // A site that was never seen may have run between two
  // samples: with the mean weight w of this method's counts, or as many calls and iterations as there
  // are to a sample if those are more, N executions all go unseen with probability (1 - 1/w)^N, so
  // `high` is ln 0.05 / ln(1 - 1/w), about 3 w, times `together`. Nothing where there were calls and no sample.
  std::optional<Estimate> estimate(SlotKind kind, SiteId site) const;

  // Returns the cycles that all executions of a loop took. Nothing where executions were seen but
  // none was timed.
  //
  // Executions are timed after each flush, and those of one window between flushes stand for the
  // entries of that window (profile/data/estimate.h has the law), so that a loop that changes as the
  // program goes on is not taken for what it was at the beginning. The total is their weighted mean
  // times the estimated entries. Its relative variance is that of the mean and that of the entries
  // together:
  //
  //     s^2 / (m * mean^2) * (1 - timed / entries) + (1 - 1/w) / n_eff
  //
  // with s^2 = (squares - cycles^2 / timed) / (timed - 1), entries the estimated ones, and m the
  // timed executions that count when weights f differ, (sum f)^2 / sum f^2 (Cochran 1977, chapters
  // 2 and 5; Kish, Survey Sampling, 1965; of a product relative variances add up, Goodman, JASA 55,
  // 1960). Of a single timed execution s is taken to be the mean. The spread between windows is
  // part of s although it is no error, so the interval is rather too wide where windows differ.
  std::optional<Estimate> loop_cycles(SiteId site) const;

  // Sets `estimates` and the estimates of tables to the counts times `weight`, saturating; those of
  // squares to weight^2 of them. All samples are alike then, so weight_squares becomes 0.
  void weigh(uint64_t weight);

  // Fails unless the schema is valid, counts and estimates have its number of words, no word that
  // is no sum has an estimate, and every table belongs to a slot and holds possible keys.
  Status check() const;

  friend bool operator==(const MethodProfile&, const MethodProfile&) = default;
};

// One of the calls that lead to a body that is inlined.
struct InlinedCall {
  SiteId site = 0;   // of the call, in the body that calls
  MethodKey callee;  // whose body stands in its place

  friend bool operator==(const InlinedCall&, const InlinedCall&) = default;
  friend auto operator<=>(const InlinedCall&, const InlinedCall&) = default;
};

// Names a place where a body is inlined. No two bodies of one code have the same.
struct InlinedKey {
  MethodKey root;                 // whose optimized code it is
  std::vector<InlinedCall> path;  // from the root inwards; not empty

  friend bool operator==(const InlinedKey&, const InlinedKey&) = default;
  friend auto operator<=>(const InlinedKey&, const InlinedKey&) = default;
};

// What was observed of a block where its body is inlined.
struct InlinedBlock {
  uint64_t count = 0;  // executions that were observed
  // Of all executions in code that has the body there: sums weighted by the mean calls of the root
  // between sampled ones. estimate_of takes the three.
  uint64_t estimate = 0;
  // Calls of the root that ran a copy which counts this block. Copies count different blocks, so
  // count / samples is what compares blocks.
  uint64_t samples = 0;

  friend bool operator==(const InlinedBlock&, const InlinedBlock&) = default;
};

// What an indirect call or a probe of a body has seen where the body is inlined; `count`, `estimate`
// and `samples` as of a block.
struct InlinedSite {
  std::vector<uint64_t> counts;     // the words of its kind
  std::vector<uint64_t> estimates;  // likewise; 0 for words that are no sums
  Table table;                      // of call targets and values
  uint64_t samples = 0;

  friend bool operator==(const InlinedSite&, const InlinedSite&) = default;
};
using InlinedSites = std::map<std::pair<SlotKind, SiteId>, InlinedSite>;

// What was observed of a body where it is inlined into the optimized code of another method, in
// copies of that code (docs/notes/0028).
//
// These executions are no calls of the method whose body it is: nobody counts it as called, and its
// MethodProfile holds none of them. What the method ran in all is both together, about: copies are made
// later than the code that they stand for, and may inline what that still calls, so that until that
// code is made anew some executions are in the MethodProfile as well, as calls. Comparisons (Overlap)
// and exports of coverage add them up.
struct InlinedBody {
  std::vector<uint64_t> code;  // CFG hashes: of the root, then of each callee; 0 is not known
  std::map<SiteId, InlinedBlock> blocks;  // of the last callee. What is not here is unknown, not 0
  InlinedSites sites = {};  // likewise, of its indirect calls and probes: no block, edge or loop

  // Fails unless the path has 1 to 64 calls and no site 0, `code` has a hash for each method, and
  // there are blocks or sites, none of site 0 or without any count, estimate and samples; of sites,
  // unless words and tables are those of a kind that they may be of.
  Status check(const InlinedKey& key) const;

  friend bool operator==(const InlinedBody&, const InlinedBody&) = default;
};

using InlinedBodies = std::map<InlinedKey, InlinedBody>;

// What was observed of other code of a method than the one that counts, by the hash of that code.
using OtherCode = std::map<std::pair<MethodKey, uint64_t>, MethodProfile>;

// Methods by key. Each is stored under its own key.
struct Profile {
  std::map<MethodKey, MethodProfile> methods;
  InlinedBodies inlined;
  // Only of methods that are in `methods`, too, whose code is that of the later run; of equal times
  // that of the greater hash. Kept so that a merge loses nothing, whichever code turns out to be the
  // latest; no estimate, comparison or export looks at it.
  OtherCode other_code = {};

  // Returns the profile of a method, or null.
  const MethodProfile* find(MethodKey key) const;

  friend bool operator==(const Profile&, const Profile&) = default;
};

// What a merge did. Reports add up with +=.
struct MergeReport {
  uint64_t added = 0;              // methods that only `from` had
  uint64_t merged = 0;             // methods that were summed
  uint64_t saturated = 0;          // counts and estimates that stopped at 2^64-1
  std::vector<MethodKey> dropped;  // one entry for each method profile that was left out, and the
                                   // root of each inlined body that was
  uint64_t united = 0;      // of those that were summed: other sites were observed (other options)
  uint64_t other_code = 0;  // method profiles that were put, or added to, beside those that count

  MergeReport& operator+=(const MergeReport& other);
  friend bool operator==(const MergeReport&, const MergeReport&) = default;
};

// Adds `from` to `into`: counts and estimates are summed (wide sums modulo 2^128), tables united
// with their counts summed. Of min and max the lesser and the greater is kept, of a side that has a
// count; where none has, both become 0. Of a gauge the greater value is kept.
//
// Where the schemas of a method differ but not the code, as after runs with other options (flow,
// loops, targets), the sum has the slots of both: a slot that one side lacks is that of the other, and
// says what the runs saw that observed it. Of different tops the greater is kept. If they come to more
// than kMaxWords, slots behind it go, and the method is among the dropped.
//
// Of different code each is summed for itself: the one of the latest run is in `methods`, the others
// in `other_code`, whatever the order. A reader that knows the code takes what is of it.
// Malformed methods (see check) are dropped. Different intervals become 0, of different names and
// times the greater is kept.
//
// Of inlined bodies blocks and sites are united; numbers of blocks are summed, those of sites as a
// method's. Where the code differs, the body
// of the greater hashes is kept, as of schemas.
MergeReport merge(Profile& into, const Profile& from);
MergeReport merge(Profile& into, Profile&& from);  // takes what only `from` has

// Multiplies every sum, its estimate and calls included, by numerator / denominator, rounding
// towards 0. Min, max and gauges stay; table entries, inlined blocks and inlined sites that become 0
// go. Weighs a profile before a merge, or decays an old one. Returns how many counts saturated; fails if the denominator is 0.
Result<uint64_t> scale(Profile& profile, uint64_t numerator, uint64_t denominator);

// Leaves the `entries` greatest entries of each table (by count, then the lesser key first) and
// moves all others into `other`. Returns how many were moved. No entry grows by it: mass whose key
// is not known is never credited to a known one.
uint64_t trim(Profile& profile, size_t entries);

// How alike two profiles are in what a kind counts.
//
// value = sum over keys of min(a_i / A, b_i / B), where A and B are the sums of all a_i and b_i: 1
// for equal shares, 0 where nothing is shared. Two profiles without a count are alike (1); one of
// them without is not (0). The other fields are the shares of A and B, 0..1, in methods that only
// one side has, and in methods whose code differs; both add nothing to `value`. Of a method whose code
// is the same but that was observed with other options, only the sites that both sides have are in A
// and B.
//
// The keys, and what stands for them, are of
//   block, edge, counter   sites: their estimates
//   call_target, value     (site, key of the table): its estimate. `other` is one more key of each
//                          site, so that a profile is like itself; what it hides is taken as shared
//   loop                   sites: extrapolated cycles (loop_cycles)
//   log, range, gauge      none, so they take no part
// Estimates, not counts: where intervals changed over time, only they have the program's shares.
//
// What is inlined in one run may be called in another that does the same, so a method's estimates and
// tables are those of its own code and of its bodies inside of other methods together, if these are of
// the same code. Edges and loops are not known of bodies. OverlapReport::inlined compares blocks of
// bodies by (place, block).
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

// Of the same kind as OverlapReport::program.
struct MethodOverlap {
  MethodKey key;
  std::string name;
  bool mismatched = false;  // the code differs, so `value` is 0
  double value = 0;         // A and B are the sums over this method
  double share_a = 0;       // of all of a
  double share_b = 0;
};

struct OverlapReport {
  // The kind that program and methods are compared in, one that counts executions: block if both
  // sides have block counts, or else edge if any side has edge counts, or else block.
  SlotKind kind = SlotKind::kBlock;
  Overlap program;
  std::vector<KindOverlap> kinds;      // those that occur and take part, ascending
  std::vector<MethodOverlap> methods;  // those that a or b has, if only inlined, by key
  std::optional<Overlap> inlined;      // by place; nothing where neither side has any body
};

// Compares two profiles. Symmetric. O(sites + table entries); copies the methods that are inlined.
OverlapReport compare(const Profile& a, const Profile& b);

// Returns compare(a, b).program.value.
double overlap(const Profile& a, const Profile& b);

// Collects events into a profile: the last data of an id wins, ids of one method are summed, and so
// are those of one place where a body is inlined.
//
// Estimates grow from data to data of an id: what came on since the one before, times the interval
// of the flush (1 if it is not known). A lost event makes the next step larger, no more. A count
// that falls takes its estimate with it in proportion; between a table and its `other`, which
// exchange counts when the greatest entries change, estimates move along, and their sum stays.
//
// Events that break the law of trace.h are refused with an error and leave the collection as it
// was. Data in a format of a later version, or about a type, is counted in `skipped` and left out.
class ProfileBuilder {
 public:
  Status add(const TraceEvent& event);

  // Returns the sum of what was collected so far; `report` (may be null) receives what was dropped.
  Profile profile(MergeReport* report = nullptr) const;
  uint64_t skipped() const { return skipped_; }
  // Returns in which order methods were called for the first time, from 0; without those of which no
  // trace says so.
  const std::map<MethodKey, uint64_t>& first_calls() const { return first_calls_; }

 private:
  struct Stream {
    InstrumentationDesc desc;
    uint64_t method = 0;           // handle; 0 for data that is skipped
    Schema schema;                 // made with the first data, which is as large
    std::vector<uint64_t> counts;  // these three as in MethodProfile
    std::vector<uint64_t> estimates;
    Tables tables;
    double covered = 0;  // opportunities that the counts stand for
    uint64_t samples = 0;
    uint64_t weight_squares = 0;
    FlushEvent pending;  // takes effect with its data
    FlushEvent flushed;
    uint64_t interval = 0;
    bool has_data = false;
  };

  Status add_desc(const InstrumentationDesc& desc);
  Status add_data(const InstrumentationData& data);
  Status check_handles(const InstrumentationDesc& desc) const;
  void add_inlined(Profile& result, MergeReport* report) const;
  std::optional<MethodKey> method_of(uint64_t handle) const;
  MethodProfile method_of(const Stream& stream) const;
  MethodProfile sum_of(std::span<const Stream* const> streams) const;

  std::map<uint64_t, MethodDetails> details_;
  std::map<uint64_t, Stream> streams_;
  std::map<MethodKey, uint64_t> first_calls_;
  uint64_t interval_ = 0;
  bool one_countdown_ = false;  // of all threads: nobody knows whose calls were whose
  uint64_t skipped_ = 0;
};

// A profile read from a trace file.
struct TraceProfile {
  Profile profile;
  std::map<MethodKey, uint64_t> first_calls;  // ProfileBuilder::first_calls
  MergeReport report;
  bool truncated = false;  // the file ends early; the profile holds what precedes
  uint64_t skipped = 0;    // events of an unknown kind or format
  uint64_t lost = 0;       // events that the writing runtime could not deliver
};

// Reads a trace file from memory. Fails on corrupt input with offset and rule.
Result<TraceProfile> profile_from_trace(std::span<const std::byte> file);

// Prints a profile as text that parse_profile reads back to an equal profile. Malformed methods and
// inlined bodies (see check) become a comment.
std::string to_text(const Profile& profile);

// Prints the bodies alone, each as it stands in that text, with the names of `names` as comments.
std::string to_text(const InlinedBodies& bodies, const Profile& names);

// Parses the text form. Comments run from # to the end of the line; the lines of a method may come
// in any order. Numbers are decimal or 0x. Errors name line, column and rule.
//
//     uptier-profile 1
//     method 0x00000000000000a1 7 "fib" {  # module key, function index, name
//       calls 1024
//       sampled 64
//       iterations 90
//       bursts 5
//       interval 16
//       weight_squares 17664               # may be left out, it is 0 then
//       cfg 0x0123456789abcdef
//       block 1 64 ~1024                   # kind, site, count, estimate
//       block 2 3                          # without ~ the estimate is the count
//       call_target 3 top 16 other 2 ~32 { # `top` may be left out, it is 16 then
//         0x00000000000000a1:4 40 ~640     # module key:function index, count, estimate
//       }
//       value 4 top 16 count 3 sum -10 min -7 max 4 other 0 {
//         -7 2                             # value, count
//         4 1
//       }
//       loop 1 entries 9 iterations 99 timed 2 timed_iterations 20 cycles 500
//         exclusive_cycles 500 squares 130000
//       log 5 events 2 lost 0
//       counter 6 12
//       range 7 count 2 sum 30 min 10 max 20
//       gauge 8 77
//     }
//     inlined 0x00000000000000a1:7 0x0123456789abcdef {  # root and the hash of its code
//       at 5 0x00000000000000a1:8 0x0000000000000011     # call site, callee and its hash, inwards
//       block 1 64 ~1024 samples 64      # site, count, estimate, samples
//       call_target 5 other 0 samples 64 {  # as of a method, and samples
//         0x00000000000000a1:9 64 ~1024
//       }
//     }
Result<Profile> parse_profile(std::string_view text);

}  // namespace uptier
