// profile.h: observations of methods, as plain data that can be merged.
//
// Rule: merge is associative and commutative, saturates at 2^64-1, and never adds counts of
// different code. MergeReport says what saturated or was left out. A profile is advice: any counts
// are legal, also 0, 2^64-1 and counts that contradict each other.
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

// The kinds of slots, with their words in MethodProfile::counts. The numbers are part of the file
// formats. Values are signed. Wide sums are 128-bit two's complement numbers in two words, the low
// one first. A table counts by key as far as it has room; `other` counts the rest.
//
// Loops: `timed` of the entries were timed, through all their (timed) iterations. squares is the
// sum of cycles^2 over them, corrected for the correlation of executions that are timed in a row,
// so that it gives the variance of independent samples. An execution that is being timed counts as
// an entry when it is over. Logs: `events` includes the lost ones.
enum class SlotKind : uint8_t {
  kBlock = 1,   // [count] of executions
  kEdge,        // [count] of transitions
  kCallTarget,  // [other], and a table of callees
  kValue,       // [count, sum, sum high, min, max, other], and a table of values
  kLoop,        // [entries, iterations, timed, timed iterations, cycles, exclusive cycles,
                //  squares, squares high]
  kLog,         // [events, lost]
  kCounter,     // [count] the sum of the host's adds and hits
  kRange,       // [count, sum, sum high, min, max] of the host's values
  kGauge,       // [value] the host's last value, unsigned; 0 if never set
};

// Returns "block", "edge", "call_target", "value", "loop", "log", "counter", "range", "gauge" or
// "unknown".
std::string_view slot_kind_name(SlotKind kind);

// The positions of the words above, counted from Slot::word.
namespace slot_word {
inline constexpr uint32_t kCount = 0;
inline constexpr uint32_t kGaugeValue = 0;
inline constexpr uint32_t kTargetOther = 0;
inline constexpr uint32_t kSum = 1, kSumHigh = 2, kMin = 3, kMax = 4;  // for values and ranges
inline constexpr uint32_t kValueOther = 5;
inline constexpr uint32_t kLoopEntries = 0, kLoopIterations = 1, kLoopTimed = 2;
inline constexpr uint32_t kLoopTimedIterations = 3, kLoopCycles = 4, kLoopExclusiveCycles = 5;
inline constexpr uint32_t kLoopSquares = 6, kLoopSquaresHigh = 7;
inline constexpr uint32_t kLogEvents = 0, kLogLost = 1;
}  // namespace slot_word

// Returns the number of words of a slot of this kind; 0 for an unknown kind.
uint32_t slot_words(SlotKind kind);

// Returns true if slots of this kind have a table: call targets and values.
bool has_table(SlotKind kind);

// The observations at one site: their kind, and their place in the counts, `words` 8-byte words
// from `word` on.
struct Slot {
  static constexpr uint32_t kDefaultTop = 16;

  SlotKind kind = SlotKind::kBlock;
  SiteId site = 0;
  uint32_t word = 0;
  uint32_t words = 1;
  uint32_t top = 0;  // entries of its table in a thread's counters and in trace data; 0 for kinds
                     // without a table

  friend bool operator==(const Slot&, const Slot&) = default;
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// The layout of counts, and the shape of the code that it was made for.
struct Schema {
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kMaxWords = 1u << 20;  // of data; so an event has at most 8 MiB

  uint32_t version = kVersion;
  uint64_t cfg_hash = 0;  // if it is not the hash of the code, the profile is stale
  std::vector<Slot> slots;

  // Returns the schema with one word for each of the sites 1..blocks.
  static Schema block_schema(uint32_t blocks, uint64_t cfg_hash);

  // Appends a slot after the last word. `top` is used for kinds with a table only.
  void add(SlotKind kind, SiteId site, uint32_t top = Slot::kDefaultTop);

  // Returns the number of words of all slots: the size of MethodProfile::counts.
  uint32_t words() const;

  // Returns the number of words in one InstrumentationData (trace.h): words(), and two for each
  // table entry. O(slots).
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

// The key of a table entry: the callee's MethodKey (function index in `value`), or 0 and a value's
// bits.
struct TableKey {
  uint64_t module_key = 0;
  uint64_t value = 0;

  friend bool operator==(const TableKey&, const TableKey&) = default;
  friend auto operator<=>(const TableKey&, const TableKey&) = default;
};

struct TableEntry {
  uint64_t count = 0;
  uint64_t estimate = 0;  // like MethodProfile::estimates

  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

// Tables have no size limit in memory, so that merges lose nothing; see trim.
using Table = std::map<TableKey, TableEntry>;
using Tables = std::map<std::pair<SlotKind, SiteId>, Table>;

// A number that was estimated from samples, with an interval that should contain the true number
// with a probability of 95 % (docs/accuracy.md says how often it does). low <= total <= high.
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
// count * w is the Horvitz-Thompson estimator of N, unbiased, with relative variance (1 - 1/w) /
// count. Executions of one sampled call are observed together or not at all, so at most `samples`
// of them are independent:
//
//     n_eff = min(count, samples), at least 1
//     low, high = estimate * (1 -+ 1.96 * sqrt((1 - 1/w) / n_eff)), low >= count
//
// If every call is observed (w = 1), the interval has zero width. The interval is valid for samples
// of equal weight with at most one execution each, or an equal number of executions each. For the
// sites of a method, MethodProfile::estimate is better: it uses the number of executions per
// sample. The total counts only the executions that could be observed, see MethodProfile. Source:
// Horvitz and Thompson, JASA 47 (1952); for calls as clusters of executions, Cochran, Sampling
// Techniques, 3rd ed. (1977), chapter 9.
Estimate estimate_of(uint64_t count, uint64_t estimate, uint64_t samples);

// The observations of one method.
//
// A saved profile describes all that ran. Calls of entries are exact; calls that were inlined are
// in Profile::inlined. Baseline code is sampled. Optimized code counts the iterations of its loops
// exactly (Options::count_optimized); how its other blocks share these counts follows from samples,
// and edges are fitted to the blocks. docs/accuracy.md says how true that is.
//
// Profiles made from traces, and with count_optimized=off, describe only the code that was sampled;
// with count_optimized=off, `calls` lacks direct calls between optimized methods. While a method
// runs in plain optimized code, their shares do not change and their totals fall behind: an
// estimate and its interval then describe the part that could be observed, and `calls` may be
// greater than the estimate of the entry block.
struct MethodProfile {
  MethodKey key;
  std::string name;
  Schema schema;
  std::vector<uint64_t> counts;  // one per word of the schema
  // likewise: sums, weighted by the interval at the time of observation, and scaled to the actual
  // number of calls and iterations unless that interval was 1; 0 for words that are not sums
  std::vector<uint64_t> estimates;
  Tables tables;               // without empty tables and empty entries
  uint64_t calls = 0;          // counted by the stub
  uint64_t sampled_calls = 0;  // calls in which `counts` were observed
  // Calls in processes that took no sample of the method. The estimates of their blocks follow from
  // calls, iterations and the control flow.
  uint64_t guessed_calls = 0;
  uint64_t iterations = 0;  // arrivals at loop headers, both from outside of the loop and from its
                            // end
  uint64_t bursts = 0;      // runs of iterations in which `counts` were observed
  // The sum, over these calls and bursts, of the squares of their weights. It says how unequal the
  // weights are. 0 means unknown, as in files from before this sum existed; the weights then count
  // as equal.
  uint64_t weight_squares = 0;
  uint64_t interval = 0;  // mean calls between sampled ones; 0 is unknown or mixed
  uint64_t time = 0;      // Unix time of the latest run in it; 0 is unknown
  // True if the method ran in optimized code that does not count (count_optimized=off, or no word was
  // left to count in), in at least one of the runs. Calls and estimates may then be too low by an
  // unknown amount. Profiles made from traces do not have it.
  bool behind = false;

  // Returns how often a site was seen (call targets: `other` and the table; loops: entries);
  // nothing (not 0) for a site without a slot, and for a gauge.
  std::optional<uint64_t> count(SlotKind kind, SiteId site) const;

  // Returns the words of a slot; empty for a site without a slot.
  std::span<const uint64_t> words(SlotKind kind, SiteId site) const;

  // Returns the table of a site, or null if it has no entries.
  const Table* table(SlotKind kind, SiteId site) const;

  // Returns estimate_of the result of count(), but with
  //
  //     n_eff = min(count / together, samples) * min(1, samples * w^2 / weight_squares)
  //     together = 1 + (most - 1) * (p + 3/4 (1 - p)),   p = count / (most * samples)
  //
  // `most` is the number of executions per sample at the busiest block or edge, but no less than
  // the iterations per sample. Executions of one site come together, in few bursts rather than
  // many, and so tell less. The last factor, with the mean weight w of all blocks and edges,
  // accounts for samples of very different weights, which adaptive rates cause (docs/notes/0038).
  // O(slots).
  //
  // A site that was never seen may have run between two samples. With the mean weight w of this
  // method's counts (or the calls and iterations per sample, if those are more), N executions all
  // go unseen with probability (1 - 1/w)^N. So `high` is ln 0.05 / ln(1 - 1/w), about 3 w, times
  // `together`. Returns nothing if there were calls but no sample, unless optimized code has counted
  // them: then the interval reaches from 0 to twice the estimate.
  std::optional<Estimate> estimate(SlotKind kind, SiteId site) const;

  // Returns the cycles of all executions of a loop. Nothing if executions were seen but none was
  // timed.
  //
  // Some executions after each flush are timed. They stand for the entries of the window up to the
  // next flush (profile/data/estimate.h has the rule), so a loop that changes while the program runs is
  // not judged by its first executions alone. The total is their weighted mean times the estimated
  // entries. Its relative variance is the variance of the mean plus the variance of the entries:
  //
  //     s^2 / (m * mean^2) * (1 - timed / entries) + (1 - 1/w) / n_eff
  //
  // with s^2 = (squares - cycles^2 / timed) / (timed - 1), entries the estimated ones, and m the
  // effective number of timed executions for unequal weights f, (sum f)^2 / sum f^2 (Cochran 1977,
  // chapters 2 and 5; Kish, Survey Sampling, 1965; the relative variances of a product add up,
  // Goodman, JASA 55, 1960). If a single execution was timed, s is assumed to be the mean. The
  // spread between windows is part of s although it is no error, so the interval is rather too wide
  // if windows differ.
  std::optional<Estimate> loop_cycles(SiteId site) const;

  // Sets `estimates` and the estimates of tables to the counts times `weight`, saturating; sums of
  // squares are multiplied by weight^2. All samples then have equal weight, so weight_squares
  // becomes 0.
  void weigh(uint64_t weight);

  // Fails unless the schema is valid, counts and estimates have its number of words, only sums have
  // estimates, and every table belongs to a slot and has possible keys.
  Status check() const;

  friend bool operator==(const MethodProfile&, const MethodProfile&) = default;
};

// One of the calls on the path to an inlined body.
struct InlinedCall {
  SiteId site = 0;   // of the call, in the body that calls
  MethodKey callee;  // the method whose body replaces the call

  friend bool operator==(const InlinedCall&, const InlinedCall&) = default;
  friend auto operator<=>(const InlinedCall&, const InlinedCall&) = default;
};

// Names a place where a body is inlined. It is unique within one method's code.
struct InlinedKey {
  MethodKey root;                 // the method whose optimized code contains it
  std::vector<InlinedCall> path;  // from the root inwards; not empty

  friend bool operator==(const InlinedKey&, const InlinedKey&) = default;
  friend auto operator<=>(const InlinedKey&, const InlinedKey&) = default;
};

// The observations of a block in an inlined body.
struct InlinedBlock {
  uint64_t count = 0;  // executions that were observed
  // Estimate for all executions in code with the body at this place: sums weighted by the mean
  // number of calls of the root between samples. estimate_of takes all three.
  uint64_t estimate = 0;
  // Calls of the root that ran a copy which counts this block. Copies count different blocks, so
  // use count / samples to compare blocks.
  uint64_t samples = 0;

  friend bool operator==(const InlinedBlock&, const InlinedBlock&) = default;
};

// The observations of an indirect call or a probe in an inlined body. `count`, `estimate` and
// `samples` are as for a block.
struct InlinedSite {
  std::vector<uint64_t> counts;     // the words of the slot's kind
  std::vector<uint64_t> estimates;  // likewise; 0 for words that are not sums
  Table table;                      // for call targets and values
  uint64_t samples = 0;

  friend bool operator==(const InlinedSite&, const InlinedSite&) = default;
};
using InlinedSites = std::map<std::pair<SlotKind, SiteId>, InlinedSite>;

// The observations of a body that is inlined into another method's optimized code, made by copies
// of that code (docs/notes/0028).
//
// These executions are not calls of the body's own method: they are not in its calls nor in its
// MethodProfile. The method's executions are about the sum of both. The sum is not exact:
// instrumented copies are made later than the code that they stand for, and may inline calls that
// this code still makes. Until that code is compiled again, some executions are therefore also in
// the MethodProfile, as calls. Comparisons (Overlap) and exports of coverage add both.
struct InlinedBody {
  std::vector<uint64_t> code;  // CFG hashes of the root, then of each callee; 0 is unknown
  std::map<SiteId, InlinedBlock> blocks;  // of the last callee; a block that is missing is unknown,
                                          // not 0
  // Likewise, for its indirect calls and probes, and for its edges, which are inferred from the
  // blocks: no code counts them. Not blocks or loops.
  InlinedSites sites = {};

  // Fails unless the path has 1 to 64 calls, none with site 0; `code` has a hash for each method;
  // and there are blocks or sites, none with site 0 or without any count, estimate and samples. The
  // words and tables of a site must fit a kind that it may have.
  Status check(const InlinedKey& key) const;

  friend bool operator==(const InlinedBody&, const InlinedBody&) = default;
};

using InlinedBodies = std::map<InlinedKey, InlinedBody>;

// Observations of a method from when it had other code, by the hash of that code.
using OtherCode = std::map<std::pair<MethodKey, uint64_t>, MethodProfile>;

// Methods by key. Each is stored under its own key.
struct Profile {
  std::map<MethodKey, MethodProfile> methods;
  InlinedBodies inlined;
  // Observations of other code, for methods that are also in `methods`. `methods` has the code of
  // the latest run; for equal times, the code with the greater hash. The other code is kept so that
  // a merge loses nothing, whichever code turns out to be the latest; no estimate, comparison or
  // export uses it.
  OtherCode other_code = {};

  // Returns the profile of a method, or null.
  const MethodProfile* find(MethodKey key) const;

  friend bool operator==(const Profile&, const Profile&) = default;
};

// The result of a merge. Reports can be added with +=.
struct MergeReport {
  uint64_t added = 0;              // methods that only `from` had
  uint64_t merged = 0;             // methods that were summed
  uint64_t saturated = 0;          // counts and estimates that stopped at 2^64-1
  std::vector<MethodKey> dropped;  // one entry for each method profile that was left out, and the
                                   // root of each inlined body that was left out
  uint64_t united = 0;      // summed methods whose sides observed different sites (other options)
  uint64_t other_code = 0;  // method profiles of other code that were added to `other_code`

  MergeReport& operator+=(const MergeReport& other);
  friend bool operator==(const MergeReport&, const MergeReport&) = default;
};

// Adds `from` to `into`. Counts and estimates are summed (wide sums modulo 2^128); tables are
// united and their counts summed. The lesser min and the greater max are kept, from the sides that
// have a count; if neither side has one, both become 0. The greater value of a gauge is kept.
//
// If the schemas of a method differ but its code does not, as after runs with other options (flow,
// loops, targets), the sum has the slots of both sides. A slot that only one side has then
// describes only the runs that observed it. The greater top is kept. If the slots exceed kMaxWords,
// the last ones are dropped, and the method is in the `dropped` list.
//
// If the code differs, each code is summed separately: the code of the latest run is in `methods`,
// all other code is in `other_code`, in whatever order profiles are merged. A reader that knows the
// code takes the profile with its hash. Malformed methods (see check) are dropped. Different
// intervals become 0; of different names and times the greater is kept. The sum is marked `behind`
// if one of the sides is. Throws std::bad_alloc; `into` may then have a part of the sum.
//
// Blocks and sites of inlined bodies are united; the numbers of blocks are summed, the numbers of
// sites as for a method. If the code differs, the body with the greater hashes is kept.
MergeReport merge(Profile& into, const Profile& from);
MergeReport merge(Profile& into, Profile&& from);  // moves the parts that only `from` has

// Multiplies every sum, its estimate and calls included, by numerator / denominator, rounding
// towards 0. Min, max and gauges do not change; table entries, inlined blocks and inlined sites
// that become 0 are removed. Use it to weigh a profile before a merge, or to let an old one decay.
// Returns how many counts saturated; fails if the denominator is 0.
Result<uint64_t> scale(Profile& profile, uint64_t numerator, uint64_t denominator);

// Keeps the `entries` greatest entries of each table (by count, then the lesser key first) and
// moves all others into `other`. Returns how many were moved. The kept entries do not grow: counts
// of unknown keys are never attributed to known ones.
uint64_t trim(Profile& profile, size_t entries);

// The similarity of two profiles in the counts of one kind.
//
// value = sum over keys of min(a_i / A, b_i / B), where A and B are the sums of all a_i and b_i: 1
// for equal shares, 0 if nothing is shared. Two profiles without any count are equal (1); if only
// one has counts, the value is 0. The other fields are shares of A and B, 0..1: in methods that
// only one side has, and in methods whose code differs. Both add nothing to `value`. If a method's
// code is the same but was observed with other options, A and B have only the sites that both sides
// have.
//
// The keys and their amounts, by kind:
//   block, edge, counter   sites: their estimates
//   call_target, value     (site, key of the table): its estimate. `other` is one more key of each
//                          site, so that a profile equals itself; keys hidden in it count as shared
//   loop                   sites: extrapolated cycles (loop_cycles)
//   log, range, gauge      none, so they take no part
// Estimates are used, not counts: if intervals changed over time, only estimates have the program's
// shares.
//
// A body that is inlined in one run may be called in another run that does the same. So a method's
// estimates and tables include those of its bodies inside of other methods, if the code is the
// same. Edges and loops of inlined bodies are unknown. OverlapReport::inlined compares blocks of
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
  // True if the side has a site of the kind. If not, it was not observed (other options), and
  // `overlap` has no meaning.
  bool in_a = false;
  bool in_b = false;

  bool comparable() const { return in_a && in_b; }
};

// For the same kind as OverlapReport::program.
struct MethodOverlap {
  MethodKey key;
  std::string name;
  bool mismatched = false;  // the code differs, so `value` is 0
  double value = 0;         // A and B are the sums over this method
  double share_a = 0;       // of all of a
  double share_b = 0;
  bool behind_a = false;  // MethodProfile::behind
  bool behind_b = false;
};

struct OverlapReport {
  // The kind that program and methods are compared in, one that counts executions: block if both
  // sides have block counts, else edge if any side has edge counts, else block.
  SlotKind kind = SlotKind::kBlock;
  Overlap program;
  std::vector<KindOverlap> kinds;      // the kinds that occur and take part, ascending
  std::vector<MethodOverlap> methods;  // methods of a or b, also if only inlined, by key
  std::optional<Overlap> inlined;      // by place; nothing if neither side has an inlined body
};

// Compares two profiles. Symmetric. O(sites + table entries); copies inlined methods.
OverlapReport compare(const Profile& a, const Profile& b);

// Returns compare(a, b).program.value.
double overlap(const Profile& a, const Profile& b);

// Collects events into a profile. The last data of an id replaces earlier data; different ids of
// one method are summed, and so are ids of one place where a body is inlined.
//
// Estimates grow from one data event of an id to the next: by the increase of the count, times the
// interval of the flush (1 if unknown). If an event is lost, the next step is larger. If a count
// falls, its estimate falls in proportion. A table and its `other` exchange counts when the
// greatest entries change; their estimates move along, and the sum stays the same.
//
// Events that break the rules of trace.h are refused with an error and do not change the
// collection. Data in a later format, and data whose description begins with a type handle
// (BulkType), is counted in `skipped` and left out.
class ProfileBuilder {
 public:
  Status add(const TraceEvent& event);

  // Returns the sum of the data so far; `report` (may be null) receives the dropped parts.
  Profile profile(MergeReport* report = nullptr) const;
  uint64_t skipped() const { return skipped_; }
  // Returns the order in which methods were called for the first time, from 0, for the methods
  // whose first call a trace reports.
  const std::map<MethodKey, uint64_t>& first_calls() const { return first_calls_; }

 private:
  struct Stream {
    InstrumentationDesc desc;
    uint64_t method = 0;           // handle; 0 for data that is skipped
    Schema schema;                 // made with the first data, and as large
    std::vector<uint64_t> counts;  // this and the next two are as in MethodProfile
    std::vector<uint64_t> estimates;
    Tables tables;
    double covered = 0;  // opportunities that the counts represent
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
  bool one_countdown_ = false;  // shared by all threads: nobody knows which thread made which calls
  uint64_t skipped_ = 0;
};

// A profile read from a trace file.
struct TraceProfile {
  Profile profile;
  std::map<MethodKey, uint64_t> first_calls;  // ProfileBuilder::first_calls
  MergeReport report;
  bool truncated = false;  // the file ends early; the profile has the part before the end
  uint64_t skipped = 0;    // events of an unknown kind or format
  uint64_t lost = 0;       // events that the writing runtime could not deliver
};

// Reads a trace file from memory. Fails on corrupt input with offset and rule.
Result<TraceProfile> profile_from_trace(std::span<const std::byte> file);

// Prints a profile as text that parse_profile reads back to an equal profile. Malformed methods and
// inlined bodies (see check) become a comment.
std::string to_text(const Profile& profile);

// Prints only the bodies, as in that text, with the names of `names` as comments.
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
//       weight_squares 17664               # it and the next three may be left out, and are 0 then
//       guessed 12
//       time 1764201600
//       behind 1
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
