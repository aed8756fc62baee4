#include "jit/compile.h"
#include "jit/opt/optimize.h"
#include "jit/opt/osr_entry.h"
#include "jit/x64/emit.h"
#include "jit/x64/lower.h"
#include "jit/x64/macros.h"

namespace uptier::jit {
namespace {

// More than this is left to the baseline: time and memory grow with the number of live values.
constexpr size_t kMostInstructions = 1'000'000;

// Debug builds check the register allocation of functions up to this size; the checker is slow.
[[maybe_unused]] constexpr size_t kMostChecked = 3'000;

Status check(const CompileInput& in) {
  if (Status s = check_cpu(); !s.ok()) return s;
  if (in.function.insts.size() > kMostInstructions) {
    return Error{ErrorCode::kUnsupported, in.function.name + ": too many instructions"};
  }
  for (const HostCallee& c : in.function.host_callees) {
    if (c.address == nullptr) {
      return Error{ErrorCode::kUnsupported, "host function " + c.name + " has no address"};
    }
  }
  return {};
}

// Returns where block probes count, by block site - 1; empty in a plain copy.
Result<std::vector<uint32_t>> counters_of(const Function& f, const OptimizeRequest& r) {
  std::vector<uint32_t> offsets;
  if (r.copy == Copy::kPlain) return offsets;
  const ProbePlan* p = r.probes;
  for (uint32_t b = 0; p == nullptr && b < f.block_sites; ++b) offsets.push_back(8 * b);
  if (p == nullptr) return offsets;
  bool blocks = p->flow == FlowMode::kBlocks && p->blocks.size() == f.block_sites;
  if (!blocks || p->counters != CounterMode::kPerThread || p->narrow) {
    return Error{ErrorCode::kUnsupported,
                 f.name + ": optimized code counts blocks, in 64-bit words of the thread's own"};
  }
  return p->blocks;
}

}  // namespace

Result<std::unique_ptr<Code>> compile_optimized(const CompileInput& in, const OptimizeRequest& r) {
  if (Status s = check(in); !s.ok()) return s.error();
  Result<std::vector<uint32_t>> counters = counters_of(in.function, r);
  if (!counters.ok()) return counters.error();
  bool osr = r.osr_loop.valid() && !r.from_host;
  OsrFunction body;
  uint32_t baseline_frame = 0;
  if (r.from_host) {
    auto entered = enter_from_host(in.function, r.osr_loop, compute_liveness(in.function));
    if (!entered.ok()) return entered.error();
    body.function = std::move(*entered);
  } else if (osr) {
    Liveness live = compute_liveness(in.function);
    FrameLayout frame = layout_frame(in.function, live);
    baseline_frame = frame.size;
    auto entered = enter_at_loop(in.function, r.osr_loop, live, frame);
    if (!entered.ok()) return entered.error();
    body = std::move(*entered);
  } else {
    body.function = in.function;
  }
  Optimized o =
      optimize(body.function, {in.method, r.block_counts, r.targets, r.inlinees}, r.observer);
  x64::MachineFunction machine = x64::lower(
      {body.function, o.loops, o.frequencies, osr, body.slots, x64::has_bmi2(), *counters});
  x64::Allocation allocation = x64::allocate_registers(machine);
#ifndef NDEBUG
  if (machine.insts.size() <= kMostChecked) {
    std::string problem = x64::check_allocation(machine, allocation);
    if (!problem.empty()) {
      return Error{ErrorCode::kInvalidInput, in.function.name + ": " + problem};
    }
  }
#endif
  return x64::emit({in, body.function, machine, allocation, osr, baseline_frame});
}

}  // namespace uptier::jit
