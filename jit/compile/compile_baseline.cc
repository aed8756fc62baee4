#include "jit/baseline/baseline_compiler.h"
#include "jit/compile/compile.h"
#include "jit/frontend/attach_deopts.h"
#include "jit/ir/fuel_flag.h"
#include "jit/ir/is_call.h"

namespace uptier::jit {
namespace {

// A leaf with a small frame may use the stack that the limit keeps free for host functions.
constexpr uint32_t kSmallFrame = 1024;
// Larger frames are refused: the stack check comes after the frame was allocated, below the limit.
constexpr uint32_t kLargestFrame = 1u << 20;

bool makes_calls(const Function& f) {
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) {
      if (is_call(f.inst(i).op)) return true;
    }
  }
  return false;
}

// Checks that the functions which the plan's probes call are given.
Status check(const CompileInput& in, const ProbePlan& plan) {
  bool scalable = plan.counters == CounterMode::kScalable || plan.counters == CounterMode::kDual;
  const Helpers& h = in.helpers;
  if (scalable && !in.space.contains(plan.narrow ? h.scalable_count32 : h.scalable_count64)) {
    return Error{ErrorCode::kInvalidInput,
                 "scalable counters need their routine in the code space"};
  }
  bool observes = plan.has_sites();
  for (const void* routine : h.probes) {
    bool missing = observes && routine == nullptr;
    if (missing) return Error{ErrorCode::kInvalidInput, "a probe routine is missing"};
  }
  if (plan.bytes > INT32_MAX) {
    return Error{ErrorCode::kUnsupported, in.function.name + ": the slab exceeds 2 GiB"};
  }
  return {};
}

Status check(const CompileInput& in, const BaselineRequest& r) {
  if (r.copy == Copy::kInstrumented && r.probes != nullptr) {
    if (Status s = check(in, *r.probes); !s.ok()) return s;
  }
  for (const HostCallee& c : in.function.host_callees) {
    if (c.address == nullptr) {
      return Error{ErrorCode::kUnsupported, "host function " + c.name + " has no address"};
    }
  }
  if (r.enterable && r.copy != Copy::kPlain) {
    return Error{ErrorCode::kInvalidArgument, "only plain copies can be entered in the middle"};
  }
  return {};
}

// Returns what a body holds that belongs to this process and has no name; or null.
const char* unnamed_in(const Function& f) {
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      const Shape shape = info(i.op).shape;
      const bool ref = i.op == Opcode::kConst && f.type_of(i.result) == Type::kRef && i.imm != 0;
      if (ref) return "a constant address";
      if ((shape == Shape::kLoad || shape == Shape::kStore) && is_fuel(i)) return "fuel";
    }
  }
  return nullptr;
}

// `finish` takes the compiler that has run.
template <typename Finish>
auto compile(const CompileInput& in, const BaselineRequest& r, bool records, Finish finish)
    -> decltype(finish(std::declval<baseline::BaselineCompiler&>())) {
  if (Status s = check(in, r); !s.ok()) return s.error();
  Liveness live = compute_liveness(in.function);
  FrameLayout frame = layout_frame(in.function, live);
  // Guards that exit to the host use the values in the host's slots.
  uint32_t guards = r.to_host && in.helpers.leave != nullptr ? count_guards(in.function) : 0;
  Function with_exits;
  if (guards != 0) {
    with_exits = in.function;
    attach_deopts(with_exits, {live, frame, guards}, true);
  }
  const Function& f = guards != 0 ? with_exits : in.function;
  bool check_stack = makes_calls(in.function) || frame.size > kSmallFrame / 2;
  for (;;) {
    baseline::BaselineCompiler compiler({in, f, r, frame, live, check_stack, records});
    compiler.run();
    if (compiler.frame_size() > kLargestFrame) {
      return Error{ErrorCode::kUnsupported, in.function.name + ": the frame exceeds 1 MiB"};
    }
    // The number of spill slots is known only now; the second attempt is the last.
    if (check_stack || compiler.frame_size() <= kSmallFrame) return finish(compiler);
    check_stack = true;
  }
}

}  // namespace

Result<std::unique_ptr<Code>> compile_baseline(const CompileInput& in, const BaselineRequest& r) {
  return compile(in, r, false, [](baseline::BaselineCompiler& c) { return c.publish(); });
}

Result<RecordedCode> record_baseline(const CompileInput& in, const BaselineRequest& r) {
  if (r.copy != Copy::kPlain || r.enterable || r.to_host) {
    return Error{ErrorCode::kUnsupported, "only plain copies without exits are recorded"};
  }
  if (const char* what = unnamed_in(in.function)) {
    return Error{ErrorCode::kUnsupported,
                 std::string(what) + ", which has no name outside of the process"};
  }
  return compile(in, r, true, [](baseline::BaselineCompiler& c) { return c.record(); });
}

}  // namespace uptier::jit
