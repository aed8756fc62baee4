// c_policy.h: decisions of a runtime in C: a policy of the host's, the log, and replay; part of
// uptier.h, which is what programs include. <uptier/policy.h> has the formula and what it rests on.
#pragma once

#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// What becomes of a method. A policy answers with one of the first three.
typedef uint32_t uptier_action;
enum {
  UPTIER_ACTION_KEEP,
  UPTIER_ACTION_RECOMPILE,   // optimized code, made without the profile
  UPTIER_ACTION_SPECIALIZE,  // made with it
  UPTIER_ACTION_ROLL_BACK,
  UPTIER_ACTION_RE_INSTRUMENT,
  UPTIER_ACTION_BAN,
};
// Returns "keep", "recompile", ..., as a log has them; "?" for no action. Static storage; any thread.
const char* uptier_action_name(uptier_action action) UPTIER_NOEXCEPT;

// All that a decision on a method may look at. <uptier/policy.h> says what each member is
// (MethodSnapshot, SystemSnapshot); flags are 0 or 1.
typedef struct uptier_question {
  size_t size;  // of what the library has filled in
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
  uptier_loop at_loop;  // where the thread is; none at an entry
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
  // Of the system; the rates are 0 where nothing was measured.
  uint32_t queue_length;
  uint32_t code_budget_spent;
  double compile_ns;
  double speedup;
  double baseline_ns;
} uptier_question;

// An answer.
typedef struct uptier_decision {
  size_t size;  // of what the library knows of it
  uptier_action action;
  uptier_loop osr_loop;              // none, or the question's at_loop: code that is entered there
  double priority;                   // expected gain in ns; larger is more urgent
  char reason[UPTIER_MESSAGE_SIZE];  // NUL-terminated; for the log
} uptier_decision;

// A policy of the host's.
typedef struct uptier_policy {
  size_t size;  // sizeof(uptier_policy)
  void* user;   // passed to the function

  // Answers a question. `answer` comes with the library's own answer in it, by the runtime's
  // options as they are now; a policy changes what it sees otherwise, and the reason with it.
  // Anything but keep, recompile and specialize is taken for keep, and so is what cannot be done (a
  // version is on its way, there are too many, compiling failed before). When it is asked:
  // <uptier/policy.h>, Policy::decide.
  //
  //   question, answer  valid until the return
  //
  // Thread: the runtime's worker, or one that flushes, detaches or calls; one at a time, with the
  //         runtime's lock held: it must not call the runtime.
  void (*decide)(void* user, const uptier_question* question, uptier_decision* answer);
} uptier_policy;

// ---- The log ------------------------------------------------------------------------------------

// The decisions of a runtime as they were at one time.
typedef struct uptier_decisions uptier_decisions;

// One of them. Its strings are the log's; those of a record that a caller makes are only read.
typedef struct uptier_decision_record {
  size_t size;        // in: sizeof(uptier_decision_record)
  uint64_t sequence;  // from 1
  uptier_method method;
  uint32_t reserved;  // 0
  const char* method_name;
  const char* action;  // "specialize", "recompile osr:0", "set", ...: see report.h, DecisionRecord
  const char* reason;
  const char* inputs;  // what the answer depends on, for uptier_replay; "" when nothing was asked
  double priority;
} uptier_decision_record;

// Copies the log, as much of it as the runtime keeps (option decisions_kept). The caller destroys it,
// also after the runtime.
uptier_status uptier_runtime_decisions(const uptier_runtime* runtime, uptier_decisions** out,
                                       uptier_error* error) UPTIER_NOEXCEPT;
// Returns how many there are; 0 for NULL.
size_t uptier_decisions_count(const uptier_decisions* log) UPTIER_NOEXCEPT;
// Writes the record at `index`, oldest first; its strings live as long as the log. Errors:
// UPTIER_INVALID_ARGUMENT past the end.
uptier_status uptier_decisions_get(const uptier_decisions* log, size_t index,
                                   uptier_decision_record* out,
                                   uptier_error* error) UPTIER_NOEXCEPT;
void uptier_decisions_destroy(uptier_decisions* log) UPTIER_NOEXCEPT;

// What replay says; as in a record, longer text cut.
typedef struct uptier_replayed {
  size_t size;  // in: sizeof(uptier_replayed)
  double priority;
  char action[40];
  char reason[UPTIER_MESSAGE_SIZE];
} uptier_replayed;

// Makes a decision again, from `inputs` (and, where exits and guards are named in it, `reason`) of a
// record, which may be of another process. With the options of the run and no policy what comes out
// is what the log says; other options, or a policy, give what it would have said at this point, not
// what that would have led to.
//
//   options  NULL for the defaults
//   policy   asked in the library's place where one would be; NULL for none. Called on this thread
//
// Errors: UPTIER_INVALID_INPUT for inputs that are empty or not whole, with the field's name.
uptier_status uptier_replay(const uptier_decision_record* record, const uptier_options* options,
                            const uptier_policy* policy, uptier_replayed* out,
                            uptier_error* error) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
