// profile_query.h: the questions that a compiler may ask a profile.
//
//     query("uptier", "0x0123456789abcdef", "range#6")  ->  RangeAnswer{...}
//
// A key is the kind of an observation and its site, such as "counter#5". Profile files carry
// instrument tables with the same keys for IREE's tools; blocks, edges, loops and call targets,
// which those tables do not have, have keys of the same form. The scope is the CFG hash of the code
// that asks, so an answer comes from this code. In other stages than "uptier", it may come from the
// parent that a source id names (ProfileAnswer::changes). Several methods may have one shape. Then
// the counts of all of them are added, a range holds all their values, and `methods` is their
// number. "0x...@name" asks only for the method of that name.
//
// An inlined body may behave differently from other calls of its method. To ask for the
// observations of an inlined body, prefix the key with the path of calls that lead to it from the
// root, each call by its site and the CFG hash of the callee's code. The scope is the hash of the
// root. The answer comes from copies of the root's optimized code:
//
//     query("uptier", "0x<hash of left>", "2:0x<hash of pick>/call_target#5")
//
// If several places have the same key, their answers are added, as for methods of one shape.
// Blocks, call targets and probes can be queried; a body with unknown code gives no answer.
//
// An answer describes the past and guarantees nothing: code made from it needs a guard.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_file.h"

namespace uptier {

// A number of executions: counter, block, edge, log (events), loop (entries). For a gauge, the
// greatest value.
struct CounterAnswer {
  uint64_t count = 0;     // executions that were observed
  uint64_t estimate = 0;  // estimate for all executions, see MethodProfile::estimates

  friend bool operator==(const CounterAnswer&, const CounterAnswer&) = default;
};

// The values of a range or a value probe: all observed values are in [min, max], with mean `mean`.
struct RangeAnswer {
  uint64_t count = 0;
  int64_t min = 0;
  int64_t max = 0;
  double mean = 0;

  friend bool operator==(const RangeAnswer&, const RangeAnswer&) = default;
};

// The values of a value probe, the most frequent first.
struct ValuesAnswer {
  struct Value {
    int64_t value = 0;
    uint64_t count = 0;

    friend bool operator==(const Value&, const Value&) = default;
  };
  std::vector<Value> values;
  uint64_t other = 0;  // executions with unknown values; 0: `values` is complete
  RangeAnswer range;

  friend bool operator==(const ValuesAnswer&, const ValuesAnswer&) = default;
};

// The methods that an indirect call has reached, the most frequent first.
struct TargetsAnswer {
  struct Target {
    MethodKey method;
    uint64_t count = 0;

    friend bool operator==(const Target&, const Target&) = default;
  };
  std::vector<Target> targets;
  uint64_t other = 0;  // calls with unknown targets

  friend bool operator==(const TargetsAnswer&, const TargetsAnswer&) = default;
};

struct ProfileAnswer {
  std::variant<CounterAnswer, RangeAnswer, ValuesAnswer, TargetsAnswer> what;
  // Number of methods or inlined bodies that have these sites; 0 for an instrument of another tool.
  uint64_t methods = 1;
  // For an inlined body: calls of the root that ran a copy which observes this site; to compare
  // blocks of one body, use count / samples. For a method: 0.
  uint64_t samples = 0;
  // 0: the answer is from the code that was asked about. n: it has no data, and the answer is from
  // the code that it was made from, n changes ago (GatherList::source_id).
  uint32_t changes = 0;

  friend bool operator==(const ProfileAnswer&, const ProfileAnswer&) = default;
};

// A stage is the compiler or tool that queries an instrument. This one is Uptier's.
inline constexpr std::string_view kQueryStage = "uptier";

// Answers from a profile. Nothing for an unknown stage, scope or key, and for a site without
// counts. Linear in the number of methods, or inlined bodies.
std::optional<ProfileAnswer> query(const Profile& profile, std::string_view stage,
                                   std::string_view scope_hash, std::string_view key);

// Answers for one site of one method. Nothing for a site without counts.
std::optional<ProfileAnswer> query(const MethodProfile& method, SlotKind kind, SiteId site);

// Answers for one site of an inlined body.
std::optional<ProfileAnswer> query(const InlinedBody& body, SlotKind kind, SiteId site);

// The longest chain of parents that a query follows.
inline constexpr uint32_t kMostChanges = 16;
// Answers from the bytes of a file. Uptier's own stage is answered from the methods; other stages
// are answered from the instrument tables that other tools have written to the file (counters of
// one word; ranges of count, 16-byte sum, minimum and maximum), merged like ForeignTables. If the
// scope has no such instrument, but an "instrument.source.id" (gather.h) names its parent, the
// parent is asked, and so on, at most kMostChanges times.
std::optional<ProfileAnswer> query(std::span<const std::byte> file, std::string_view stage,
                                   std::string_view scope_hash, std::string_view key);

}  // namespace uptier
