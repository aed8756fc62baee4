// Measures the speed of compiling and running on this machine, before there is anything to decide.
//
//   a small body   optimized: takes the costs of a process's first compilation
//   a body         optimized: processor time / instructions    -> CompileRate::begin
//                  baseline, run a few times: least time / instructions * kOfPrograms
//                                                             -> BaselineRate::begin
//
// The worker does this before its first job, so the host never waits. Without a worker nothing is
// measured, since such runs must be reproducible. The code lives in the runtime's code space
// meanwhile. Rates that cannot be measured, or whose options differ from the default, are left as
// they are.
#include <algorithm>
#include <cassert>
#include <memory>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "sampler/context.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/compile/machine_rates.h"

namespace uptier::tiering {
namespace {

constexpr uint32_t kUnits = 12;
constexpr int64_t kRounds = 32;
constexpr int kRuns = 8;
constexpr uint32_t kArm = 3;  // instructions on each side of a branch
// Programs take so many times as long for an instruction as the body, whose values lie in registers
// and whose branches are predicted. Median of the example programs; they range from 0.6 to 1.9.
constexpr double kOfPrograms = 1.45;
// What an instruction of these programs takes where nothing was measured: 0.07 to 0.22 ns at some 3
// GHz.
constexpr double kUnmeasuredNs = 0.17;

class NoCalls final : public jit::CallResolver {
 public:
  jit::CallTarget target(MethodId) override { return {}; }
};

// One step of the body: arithmetic, and a branch with sides of equal cost.
void build_unit(FunctionBuilder& b, Variable x, Variable y, int64_t k) {
  b.def(x, b.binary(Opcode::kAdd, b.binary(Opcode::kMul, b.use(x), b.i64(2 * k + 3)), b.use(y)));
  Block add = b.create_block(), flip = b.create_block(), on = b.create_block();
  b.branch(b.binary(Opcode::kLtU, b.use(x), b.use(y)), add, flip);
  b.switch_to(add);
  b.seal(add);
  b.def(y, b.binary(Opcode::kAdd, b.use(y), b.i64(k)));
  b.jump(on);
  b.switch_to(flip);
  b.seal(flip);
  b.def(y, b.binary(Opcode::kXor, b.use(y), b.i64(k)));
  b.jump(on);
  b.switch_to(on);
  b.seal(on);
}

// A loop of `units` steps; the argument is the number of iterations.
Result<jit::Function> build_body(uint32_t units) {
  FunctionBuilder b({{Type::kI64}, Type::kI64}, "calibrate");
  Variable x = b.declare(Type::kI64), y = b.declare(Type::kI64), left = b.declare(Type::kI64);
  b.def(x, b.param(0));
  b.def(y, b.i64(1));
  b.def(left, b.param(0));
  Block loop = b.create_block(), end = b.create_block();
  b.jump(loop);
  b.switch_to(loop);
  b.loop_header();
  for (uint32_t k = 0; k < units; ++k) build_unit(b, x, y, k);
  b.def(left, b.binary(Opcode::kSub, b.use(left), b.i64(1)));
  b.branch(b.binary(Opcode::kNe, b.use(left), b.i64(0)), loop, end);
  b.seal(loop);
  b.switch_to(end);
  b.seal(end);
  b.ret(b.binary(Opcode::kAdd, b.use(x), b.use(y)));
  if (Status s = b.status(); !s) return s.error();
  jit::Function f = BuilderAccess::finish(b);
  if (Status s = jit::verify(f); !s) return s.error();
  return f;
}

uint32_t instructions_of(const jit::Function& f) {
  uint32_t n = 0;
  for (Block b : f.layout) {
    for (jit::InstId i : f.block(b).insts) {
      Opcode op = f.inst(i).op;
      n += op != Opcode::kProbe && op != Opcode::kLoopHeader;
    }
  }
  return n;
}

// Lets compiled code run with nothing due and no stack limit, as on a thread that is not attached.
class Unattached {
 public:
  Unattached() : before_(sampler::exchange_context(nullptr)) {}
  ~Unattached() { sampler::exchange_context(before_); }
  Unattached(const Unattached&) = delete;
  Unattached& operator=(const Unattached&) = delete;

 private:
  sampler::ThreadContext* before_;
};

struct Shop {
  const jit::Helpers& helpers;
  jit::CodeSpace& space;
  std::vector<std::unique_ptr<jit::Code>> made;
};

// Returns the ns per instruction of the optimizing compiler, or 0.
double time_compiling(Shop& shop, uint32_t units) {
  uint64_t start = thread_cpu_ns();
  Result<jit::Function> f = build_body(units);
  if (!f) return 0;
  NoCalls calls;
  auto code = jit::compile_optimized({*f, MethodId(0), shop.helpers, calls, shop.space}, {});
  if (!code) return 0;
  double taken = static_cast<double>(thread_cpu_ns() - start);
  shop.made.push_back(std::move(*code));
  return taken / instructions_of(*f);
}

// Returns the ns per instruction of baseline code, or 0.
double time_baseline(Shop& shop) {
  Result<jit::Function> f = build_body(kUnits);
  if (!f) return 0;
  NoCalls calls;
  auto code = jit::compile_baseline({*f, MethodId(0), shop.helpers, calls, shop.space},
                                    {.loop_checks = false});
  if (!code) return 0;
  auto run = reinterpret_cast<int64_t (*)(int64_t)>(const_cast<void*>((*code)->entry()));
  uint64_t least = UINT64_MAX;
  Unattached here;
  for (int i = 0; i < kRuns; ++i) {
    uint64_t start = now_ns();
    run(kRounds);
    least = std::min(least, now_ns() - start);
  }
  shop.made.push_back(std::move(*code));
  assert(instructions_of(*f) > kUnits * kArm);
  double executed = static_cast<double>(kRounds) * (instructions_of(*f) - kUnits * kArm);
  return static_cast<double>(least) / executed * kOfPrograms;
}

}  // namespace

MachineRates::MachineRates(const Options& options, const Options& live, const MethodTable& methods)
    : options_(options),
      live_(live),
      methods_(methods),
      compile_rate_(options.compile_ns, options.measure_rates),
      speedup_(options.speedup, options.measure_rates),
      baseline_rate_(options.baseline_ns, options.measure_rates) {}

void MachineRates::calibrate(const jit::Helpers& helpers, jit::CodeSpace& space,
                             WaitedMutex& state_mutex, std::optional<sampler::CycleClock> clock) {
  bool asked = options_.measure_rates && options_.tier == TierMode::kAuto &&
               options_.policy == PolicyMode::kAuto;
  if (!asked) return;
  Shop shop{helpers, space, {}};
  constexpr PolicyOptions kDefaults;
  double compiling = 0, running = 0;
  if (options_.compile_ns == kDefaults.compile_ns && time_compiling(shop, 1) > 0) {
    compiling = time_compiling(shop, kUnits);
  }
  if (options_.baseline_ns == kDefaults.baseline_ns) running = time_baseline(shop);
  if (!clock) clock = sampler::CycleClock::calibrate();
  HeldState lock(state_mutex);
  ns_per_cycle_ = clock->ns_per_cycle;
  // The report must count only the code of methods, so subtract this. The mutex is held while it is
  // freed.
  uint64_t freed = space.bytes_freed();
  shop.made.clear();
  assert(space.bytes_freed() >= freed);
  calibration_bytes_ = space.bytes_freed() - freed;
  compile_rate_.begin(compiling);
  baseline_rate_.begin(running);
}

// Returns the number of instructions in a version that come from inlined bodies.
uint64_t MachineRates::inlined_size(const Version& v) const {
  uint64_t size = 0;
  for (const jit::InlineRow& row : v.code->tables().inlined) {
    if (const Method* callee = methods_.known(row.method)) size += callee->shape->instructions;
  }
  return size;
}

void MachineRates::note_compiled(const Method& m, const Version& v) {
  compile_ns_total_ += v.compile_ns;
  bool ours = v.tier == Tier::kOptimized && v.code != nullptr;
  if (ours) compile_rate_.add(m.shape->instructions, inlined_size(v), v.compile_cpu_ns);
}

void MachineRates::tell(uint64_t instructions, SystemSnapshot& s) const {
  if (!options_.measure_rates) return;
  s.compile_ns = compile_rate_.ns_of(instructions);
  if (speedup_.trials() != 0) s.speedup = speedup_.factor();
  // A rate that was set, at the start or later, is kept.
  bool set = live_.baseline_ns != PolicyOptions{}.baseline_ns;
  if (!set && baseline_rate_.measured()) {
    s.baseline_ns = baseline_rate_.ns();
  } else {
    assume(s);
  }
}

void MachineRates::assume(SystemSnapshot& s) const {
  constexpr double kDefault = PolicyOptions{}.baseline_ns;
  bool will_measure = options_.measure_rates && options_.workers != 0 &&
                      options_.tier == TierMode::kAuto && options_.policy == PolicyMode::kAuto;
  bool set = options_.baseline_ns != kDefault || live_.baseline_ns != kDefault;
  if (will_measure && !set) s.baseline_ns = kUnmeasuredNs;
}

}  // namespace uptier::tiering
