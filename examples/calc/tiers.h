// tiers.h: calc as an embedder: its functions are methods of a uptier::Runtime.
//
// A function is interpreted at first (MethodInfo::host_entry); when it is hot, its plan is
// described to the runtime's builder. uptier/planned_host.h has the life of plans.
//
//   Thread: the program's. The runtime's worker calls make_plan and describe, too.
#pragma once

#include "plan.h"

namespace calc {

class Tiers : public uptier::PlannedHost {
 public:
  Tiers(Vm& vm, uptier::Runtime& runtime) : PlannedHost(runtime), vm_(vm) {}

  // Makes methods of all functions.
  uptier::Status add_all();
  // Runs the program. Errors are in the Vm.
  void run();
  // Returns the IR of the functions of a name, as they are now.
  std::string ir(std::string_view name);

  // A loop of the interpreter may be hot. Returns whether the rest of the call has run in compiled
  // code, and its result.
  bool loop_event(Closure* f, const Val* r, const Instr* header, Val& result);
  // A guard of compiled code has failed: does the rest of the call.
  Val leave(const uptier::HostFrame& frame);

 private:
  uptier::MethodInfo info(uint32_t function) override;
  void entry_changed(uint32_t function, const void* entry) override;
  void countdown_changed(uint32_t function, uptier::LoopCountdown countdown) override;
  std::unique_ptr<uptier::HostPlan> make_plan(uint32_t function, bool guess) override;
  void describe(uptier::HostPlan& plan, uptier::FunctionBuilder& b) override;
  Proto& proto(uint32_t function) { return *vm_.code.protos[function]; }
  Plan& plan(uptier::MethodId m) { return static_cast<Plan&>(plan_of(m)); }
  void trapped(const uptier::Trap& trap);

  Vm& vm_;
};

}  // namespace calc
