// Replay: the text form of a decision and its inputs in the log, for replay() of uptier/policy.h.
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

// Reads the inputs. Errors: kInvalidInput, with the name of a field that is unknown, missing, given
// twice or not a number.
Status read_inputs(std::string_view text, MethodSnapshot& m, SystemSnapshot& s);
Status read_inputs(std::string_view text, ExitSnapshot& e);
Status read_inputs(std::string_view text, TrialSnapshot& t);
Status read_inputs(std::string_view text, ValueSnapshot& v);
Status read_inputs(std::string_view text, GuardSnapshot& g);
Status read_inputs(std::string_view text, SiteSnapshot& s);

// Asks a policy of the host, and corrects an answer that cannot be followed.
Decision follow(Policy& policy, const MethodSnapshot& m, const SystemSnapshot& s,
                const PolicyOptions& o);

// Returns the action of a decision as the log shows it.
std::string logged_action(const Decision& d);

}  // namespace uptier::tiering
