// The part of c_api_policy_test.cc that must be C: a policy, and the replay of a log.
#include <stdio.h>
#include <string.h>

#include "uptier/uptier.h"

// Compiles nothing before a method has had `least` calls; counts the questions and changed answers.
typedef struct c_patient {
  uint64_t least;
  uint64_t asked;
  uint64_t changed;
  uint32_t action;  // UPTIER_ACTION_KEEP: answers as above; any other number is the answer itself
} c_patient;

static void be_patient(void* user, const uptier_question* q, uptier_decision* answer) {
  c_patient* p = user;
  ++p->asked;
  if (p->action != UPTIER_ACTION_KEEP) {
    answer->action = p->action;
    memset(answer->reason, 'x', sizeof answer->reason);  // without a terminator
    return;
  }
  if (answer->action == UPTIER_ACTION_KEEP || q->calls >= p->least) return;
  ++p->changed;
  answer->action = UPTIER_ACTION_KEEP;
  answer->osr_loop.id = 0;
  answer->priority = 0;
  snprintf(answer->reason, sizeof answer->reason, "%llu calls are few",
           (unsigned long long)q->calls);
}

uptier_status c_create_patient(const uptier_options* options, c_patient* p, uptier_runtime** out,
                               uptier_error* error) {
  const uptier_policy policy = {sizeof policy, p, be_patient};
  return uptier_runtime_create_with_policy(options, NULL, &policy, out, error);
}

// Replays every record of the log that has inputs. Returns how many decisions differ from the log;
// -1 on an error. `*replayed` receives the number of replayed records.
int c_replay_all(const uptier_decisions* log, const uptier_options* options, c_patient* p,
                 size_t* replayed, uptier_error* error) {
  const uptier_policy policy = {sizeof policy, p, be_patient};
  int unlike = 0;
  *replayed = 0;
  for (size_t k = 0; k < uptier_decisions_count(log); ++k) {
    uptier_decision_record r = {0};
    uptier_replayed again = {0};
    r.size = sizeof r;
    again.size = sizeof again;
    if (uptier_decisions_get(log, k, &r, error) != UPTIER_OK) return -1;
    if (r.inputs[0] == 0) continue;
    ++*replayed;
    if (uptier_replay(&r, options, p != NULL ? &policy : NULL, &again, error) != UPTIER_OK)
      return -1;
    unlike += strcmp(r.action, again.action) != 0 || strcmp(r.reason, again.reason) != 0 ||
              r.priority != again.priority;
  }
  return unlike;
}
