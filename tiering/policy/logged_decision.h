// LoggedDecision: one record of the decision log, as the things that it depends on. Its words are
// made from these when they are read.
//
// The rules are pure functions, so inputs and options give the answer again, with its reason and
// its priority. Answers of a host's policy, and events that are no decisions, have their words here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "tiering/policy/policy.h"
#include "tiering/policy/value_policy.h"
#include "uptier/report.h"

namespace uptier::tiering {

struct MethodInputs {
  MethodSnapshot method;
  SystemSnapshot system;
};

// Nothing: an event that is no decision.
using DecisionInputs = std::variant<std::monostate, MethodInputs, ExitSnapshot, TrialSnapshot,
                                    ValueSnapshot, GuardSnapshot, SiteSnapshot>;

// The texts and options belong to others.
struct LoggedDecision {
  uint64_t at_ns = 0;  // by now_ns()
  MethodId method;
  std::string_view method_name;
  DecisionInputs inputs;
  // The options by which the library's rules decided; null: `action`, `reason` and `priority` are
  // the answer.
  const PolicyOptions* options = nullptr;
  std::string_view action;
  std::string_view reason;  // with options: the words before those of the rule
  double priority = 0;
  uint32_t location = 0;  // DecisionRecord::location
  // Of the method so far. With MethodInputs they are members of these, and not used here.
  uint64_t calls = 0, samples = 0, iterations = 0;
};

// Returns the record with its words; `with_inputs`: with the text of the inputs, too. Pure.
DecisionRecord record_of(const LoggedDecision& d, uint64_t sequence, bool with_inputs = true);

}  // namespace uptier::tiering
