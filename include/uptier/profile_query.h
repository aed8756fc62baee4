// profile_query.h: what a compiler may ask a profile.
//
//     query("uptier", "0x0123456789abcdef", "range#6")  ->  RangeAnswer{...}
//
// Keys are those of the instrument tables that profile files carry for IREE's tools: the kind of
// what was observed and its site, "counter#5"; blocks, edges, loops and call targets, which those
// tables do not have, likewise. The scope is the CFG hash of the code that asks, so an answer never
// comes from other code. Several methods may have one shape: then counts are those of all, a range
// holds all their values, and `methods` says how many there are. "0x...@name" asks for the one of
// that name only.
//
// A body may do other things where it is inlined than its method does elsewhere. A key with the calls in
// front that lead there, each by its site and the CFG hash of the callee's code, from the root inwards,
// asks for what copies of the root's optimized code have seen in that place; the scope is the root's:
//
//     query("uptier", "0x<hash of left>", "2:0x<hash of pick>/call_target#5")
//
// Bodies of places with one such key answer together as methods of one shape do. There are blocks,
// call targets and what probes see; a body whose code is not known answers nothing.
//
// An answer says what was seen, never what must be: code made from it needs a guard.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_file.h"

namespace uptier {

// How often: counter, block, edge, log (events), loop (entries). Of a gauge the greatest value.
struct CounterAnswer {
  uint64_t count = 0;     // that were observed
  uint64_t estimate = 0;  // of all executions, see MethodProfile::estimates

  friend bool operator==(const CounterAnswer&, const CounterAnswer&) = default;
};

// What a range or a value probe has seen: nothing outside of [min, max], `mean` in between.
struct RangeAnswer {
  uint64_t count = 0;
  int64_t min = 0;
  int64_t max = 0;
  double mean = 0;

  friend bool operator==(const RangeAnswer&, const RangeAnswer&) = default;
};

// Which values a value probe has seen, the most frequent first.
struct ValuesAnswer {
  struct Value {
    int64_t value = 0;
    uint64_t count = 0;

    friend bool operator==(const Value&, const Value&) = default;
  };
  std::vector<Value> values;
  uint64_t other = 0;  // executions whose value is not known; 0: `values` are all
  RangeAnswer range;

  friend bool operator==(const ValuesAnswer&, const ValuesAnswer&) = default;
};

// Which methods an indirect call has reached, the most frequent first.
struct TargetsAnswer {
  struct Target {
    MethodKey method;
    uint64_t count = 0;

    friend bool operator==(const Target&, const Target&) = default;
  };
  std::vector<Target> targets;
  uint64_t other = 0;  // calls whose target is not known

  friend bool operator==(const TargetsAnswer&, const TargetsAnswer&) = default;
};

struct ProfileAnswer {
  std::variant<CounterAnswer, RangeAnswer, ValuesAnswer, TargetsAnswer> what;
  // Whose sites these are, or of how many inlined bodies; 0 for an instrument of another tool.
  uint64_t methods = 1;
  // Of an inlined body, the calls of the root that ran a copy which observes this site: blocks of one
  // body compare by count / samples. Of a method 0.
  uint64_t samples = 0;

  friend bool operator==(const ProfileAnswer&, const ProfileAnswer&) = default;
};

// The stage that our own instruments are written for.
inline constexpr std::string_view kQueryStage = "uptier";

// Answers from a profile; nothing for a stage, scope or key that it knows nothing of, and for a
// site that has counted nothing. Linear in the methods, or the inlined bodies.
std::optional<ProfileAnswer> query(const Profile& profile, std::string_view stage,
                                   std::string_view scope_hash, std::string_view key);

// The same of one site of one method, for whoever has it at hand. Nothing for a site that has
// counted nothing.
std::optional<ProfileAnswer> query(const MethodProfile& method, SlotKind kind, SiteId site);

// The same of a body where it is inlined.
std::optional<ProfileAnswer> query(const InlinedBody& body, SlotKind kind, SiteId site);

// The same from the bytes of a file: our own stage from its methods, others from the instrument
// tables that other tools have left in it (counters of one word; ranges as the five words of ours),
// merged as ForeignTables says.
std::optional<ProfileAnswer> query(std::span<const std::byte> file, std::string_view stage,
                                   std::string_view scope_hash, std::string_view key);

}  // namespace uptier
