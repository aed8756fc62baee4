// FrequentExits: handles methods whose exits are taken too often.
//
//   exits of a block, or a value site   the policy decides (decide_exit, policy.h): a version is made in
//                                       which the block stays, or nothing is guessed there
//   of a guard declared by the host     every version has it: if it is banned, the method goes back to
//                                       the host's interpreter, or to baseline code if there is
//                                       none, and stays there
//   callers that have inlined the body  are compiled again in both cases
//
// So the response to a frequent exit is code without that exit, and never the same code again:
// MethodExits counts over all versions, and each decision raises the next limit.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/base/state_lock.h"
#include "tiering/compile/requests.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/policy.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {

class FrequentExits {
 public:
  // All outlive this. `policy` is derived from options that may change.
  FrequentExits(const PolicyOptions& policy, const MethodTable& methods, Observer& observer,
                Requests& requests, InService& in_service)
      : policy_(policy),
        methods_(methods),
        observer_(observer),
        requests_(requests),
        in_service_(in_service) {}

  // An exit has been taken so often that the policy wants to decide.
  void consider(Method& m, uint32_t exit) UPTIER_REQUIRES(state_lock);
  // Takes all optimized code of a method out of service, including its frames. The caller has made
  // sure that the method is not optimized again at once.
  void withdraw_code(Method& m) UPTIER_REQUIRES(state_lock);

 private:
  void optimize_anew(Method& m) UPTIER_REQUIRES(state_lock);
  void withdraw_optimized(Method& m) UPTIER_REQUIRES(state_lock);
  void make_callers_anew(const Method& m) UPTIER_REQUIRES(state_lock);

  const PolicyOptions& policy_;
  const MethodTable& methods_;
  Observer& observer_;
  Requests& requests_;
  InService& in_service_;
};

}  // namespace uptier::tiering
