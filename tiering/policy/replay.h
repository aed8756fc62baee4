// Replay: what a log says of a decision and of what it was made from, for replay() of
// uptier/policy.h.
//
//   Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "tiering/policy/policy.h"
#include "tiering/policy/value_policy.h"
#include "uptier/report.h"
#include "uptier/result.h"

namespace uptier::tiering {

std::string inputs_text(const MethodSnapshot& m, const SystemSnapshot& s);
std::string inputs_text(const ExitSnapshot& e);
std::string inputs_text(const TrialSnapshot& t);
std::string inputs_text(const ValueSnapshot& v);
std::string inputs_text(const GuardSnapshot& g);
std::string inputs_text(const SiteSnapshot& s);

// Reads them. Errors: kInvalidInput, with the name of the field that is unknown, missing, given
// twice or no number.
Status read_inputs(std::string_view text, MethodSnapshot& m, SystemSnapshot& s);
Status read_inputs(std::string_view text, ExitSnapshot& e);
Status read_inputs(std::string_view text, TrialSnapshot& t);
Status read_inputs(std::string_view text, ValueSnapshot& v);
Status read_inputs(std::string_view text, GuardSnapshot& g);
Status read_inputs(std::string_view text, SiteSnapshot& s);

// Returns what a policy of the host's answers, made an answer that can be followed.
Decision follow(Policy& policy, const MethodSnapshot& m, const SystemSnapshot& s,
                const PolicyOptions& o);

// What the log says of a decision.
std::string logged_action(const Decision& d);

}  // namespace uptier::tiering
