// Replay: a decision from what the log says that it was made from.
//
// DecisionRecord::inputs holds all fields of both snapshots, doubles so that they come back bit for
// bit; with the options of the run, decide() gives the answer that stands beside them. Other
// options give what another policy would have said at this point (not what it would have led to).
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

// Decides again; `action` and `reason` of the result are as the log has them, and so is `priority`.
// Errors: kInvalidInput, also for a record without inputs.
Result<DecisionRecord> replay(const DecisionRecord& r, const PolicyOptions& o);

// What the log says of a decision.
std::string logged_action(const Decision& d);

}  // namespace uptier::tiering
