// FrequentExits: what becomes of a method whose exits are taken too often.
//
//   exits of a block, or a value site   the policy answers (decide_exit, policy.h): another version is
//                                       made, in which the block stays or nothing is guessed there
//   of a guard that the host declared   it is in every version: when it is banned, the method goes back
//                                       to baseline code and stays there
//   callers that have the body inlined  are compiled again in either case
//
// So an exit that is taken is answered by code that does not have it, and never by the same again:
// MethodExits counts over all versions, and each answer raises the limit of the next.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/compile/requests.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/policy/policy.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {

class FrequentExits {
 public:
  // All outlive this. `policy` follows from options that change.
  FrequentExits(const PolicyOptions& policy, const MethodTable& methods, Observer& observer,
                Requests& requests, InService& in_service)
      : policy_(policy),
        methods_(methods),
        observer_(observer),
        requests_(requests),
        in_service_(in_service) {}

  // An exit has been taken as often as the policy wants to hear of.
  void consider(Method& m, uint32_t exit);
  // Takes all optimized code of a method out of service, from its frames too. The caller has seen to it
  // that the method is not optimized again at once.
  void withdraw_code(Method& m);

 private:
  void optimize_anew(Method& m);
  void withdraw_optimized(Method& m);
  void make_callers_anew(const Method& m);

  const PolicyOptions& policy_;
  const MethodTable& methods_;
  Observer& observer_;
  Requests& requests_;
  InService& in_service_;
};

}  // namespace uptier::tiering
