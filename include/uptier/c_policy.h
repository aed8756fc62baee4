// c_policy.h: the decisions of a runtime in C: a policy made by the host, the log of decisions, and
// replay. Part of uptier.h; programs include that. <uptier/policy.h> has the formula and its basis.
#pragma once

#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A decision on a method. A policy answers with one of the first three.
typedef uint32_t uptier_action;
enum {
  UPTIER_ACTION_KEEP,
  UPTIER_ACTION_RECOMPILE,   // optimized code without the profile
  UPTIER_ACTION_SPECIALIZE,  // optimized code with the profile
  // In logs only (DecisionRecord::action in <uptier/report.h>):
  UPTIER_ACTION_ROLL_BACK,
  UPTIER_ACTION_RE_INSTRUMENT,
  UPTIER_ACTION_BAN,
};
// Returns "keep", "recompile", ..., as in the log; "?" for a number that is no action. Static
// storage; any thread.
const char* uptier_action_name(uptier_action action) UPTIER_NOEXCEPT;

// The inputs of a decision on a method. <uptier/policy.h> describes each member (MethodSnapshot,
// SystemSnapshot); flags are 0 or 1.
typedef struct uptier_question {
  size_t size;  // of the part that the library has filled in
  uptier_tier tier;
  uint32_t optimized_requested;
  uint32_t osr_requested;
  uint32_t osr_ready;
  uint32_t can_instrument;
  uint32_t failed;
  uint32_t excluded;
  uint32_t guard_banned;
  uint32_t instructions;
  uint32_t loops;
  uint32_t optimized_versions;
  uint32_t drift_versions;
  uint32_t phase_drifts;
  uptier_loop at_loop;  // the loop that the thread is in; none at an entry
  uint64_t calls;
  uint64_t samples;
  uint64_t iterations;
  uint64_t sampled_work;
  uint64_t saved_work;
  uint64_t saved_samples;
  uint64_t drift_samples;
  uint64_t version_calls;
  uint64_t slower_calls;
  double sampled_share;
  double drift;
  double phase_drift;
  // About the system. A rate is 0 if it was not measured.
  uint32_t queue_length;
  uint32_t code_budget_spent;
  double compile_ns;
  double speedup;
  double baseline_ns;
  uint64_t behind_work;    // about the method,
  uint32_t osr_elsewhere;  // likewise
} uptier_question;

// An answer.
typedef struct uptier_decision {
  size_t size;  // of the struct in the library, in bytes: members beyond it are ignored
  uptier_action action;
  uptier_loop osr_loop;              // none, or the question's at_loop: then the code is entered
                                     // there
  double priority;                   // expected gain in ns; larger is more urgent
  char reason[UPTIER_MESSAGE_SIZE];  // NUL-terminated; for the log
} uptier_decision;

// A policy made by the host.
typedef struct uptier_policy {
  size_t size;  // sizeof(uptier_policy)
  void* user;   // passed to the function

  // Answers a question. `answer` already contains the library's own answer, by the runtime's
  // current options; a policy overwrites it where it disagrees, together with the reason. Any
  // action but keep, recompile and specialize counts as keep, and so does an answer that cannot be
  // followed (a version is being made, there are too many, compiling failed before). Policy::decide
  // in <uptier/policy.h> says when a policy is asked.
  //
  //   question, answer  valid during the call
  //
  // Thread: the runtime's worker, or a thread that flushes, detaches or calls; one at a time, with
  // the runtime's lock held, so it must not call the runtime.
  void (*decide)(void* user, const uptier_question* question, uptier_decision* answer);
} uptier_policy;

// ---- The log ------------------------------------------------------------------------------------

// A copy of a runtime's decisions at one time.
typedef struct uptier_decisions uptier_decisions;

// One decision. Its strings belong to the log; if a caller makes a record, the library only reads
// its strings.
typedef struct uptier_decision_record {
  size_t size;        // in: sizeof(uptier_decision_record)
  uint64_t sequence;  // from 1
  uptier_method method;
  uint32_t location;  // of the exit or loop that it is about (uptier_runtime_positions); 0: none
  const char* method_name;
  const char* action;  // "specialize", "recompile osr:0", "set", ...: see report.h, DecisionRecord
  const char* reason;
  const char* inputs;  // the inputs of the answer, for uptier_replay; "" if there was no question
  double priority;
} uptier_decision_record;

// Copies the part of the log that the runtime keeps (option decisions_kept). The caller destroys
// it; that may be after the runtime is destroyed.
uptier_status uptier_runtime_decisions(const uptier_runtime* runtime, uptier_decisions** out,
                                       uptier_error* error) UPTIER_NOEXCEPT;
// Returns the number of records; 0 for NULL.
size_t uptier_decisions_count(const uptier_decisions* log) UPTIER_NOEXCEPT;
// Writes the record at `index`, oldest first; its strings live as long as the log. Errors:
// UPTIER_INVALID_ARGUMENT past the end.
uptier_status uptier_decisions_get(const uptier_decisions* log, size_t index,
                                   uptier_decision_record* out,
                                   uptier_error* error) UPTIER_NOEXCEPT;
void uptier_decisions_destroy(uptier_decisions* log) UPTIER_NOEXCEPT;

// The result of a replay. The strings are as in a record; longer text is cut.
typedef struct uptier_replayed {
  size_t size;  // in: sizeof(uptier_replayed)
  double priority;
  char action[40];
  char reason[UPTIER_MESSAGE_SIZE];
} uptier_replayed;

// Makes a decision again, from the `inputs` of a record, which may come from another process. The
// place that a record's `reason` names ("exit at ...", "guard of ...") stays in the result's
// reason. With the options of the run and no policy, the result is the decision in the log. Other
// options, or a policy, give the decision that they would have made at this point; later effects of
// such a decision are not simulated.
//
//   options  NULL for the defaults
//   policy   replaces the library's policy; NULL for none. Called on this thread
//
// Errors: UPTIER_INVALID_INPUT for inputs that are empty or incomplete, with the name of the field.
uptier_status uptier_replay(const uptier_decision_record* record, const uptier_options* options,
                            const uptier_policy* policy, uptier_replayed* out,
                            uptier_error* error) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
