// From a Plan to a Version: describe, verify, compile. What fails here never fails a running
// method.
#include <chrono>

#include "jit/ir/build.h"
#include "jit/ir/verify.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

bool is_real(Opcode op) { return op != Opcode::kProbe && op != Opcode::kLoopHeader; }

// Learns from the first build what never changes afterwards. The caller holds the state mutex.
void learn_shape(Method& m, const jit::Function& f) {
  m.loop_count = f.loop_count;
  m.osr = std::make_unique<std::atomic<const Version*>[]>(f.loop_count);
  m.osr_asked = std::make_unique<std::atomic<bool>[]>(f.loop_count);
  m.osr_requested.assign(f.loop_count, false);
  m.schema = Schema::block_schema(f.block_sites, f.cfg_hash);
  m.block_weights.clear();
  for (Block b : f.layout) {
    uint32_t weight = 0;
    for (jit::InstId i : f.block(b).insts) weight += is_real(f.inst(i).op);
    m.block_weights.push_back(weight);
    m.instructions += weight;
  }
  m.slab_words.store(m.schema.words(), std::memory_order_relaxed);
}

}  // namespace

Result<jit::Function> RuntimeImpl::describe(Method& m) {
  FunctionBuilder b(m.info.signature, m.info.name);
  if (Status s = m.host.build(m.id, b); !s) return s.error();
  jit::Function f = BuilderAccess::finish(b);
  if (Status s = jit::verify(f); !s) return s.error();
  for (const jit::Callee& c : f.callees) {
    if (c.method.index() >= method_count_.load(std::memory_order_acquire)) {
      return Error{ErrorCode::kInvalidInput,
                   m.info.name + ": calls a method that is not registered"};
    }
  }
  if (m.schema.cfg_hash == 0) {
    std::lock_guard lock(state_mutex_);
    learn_shape(m, f);
  }
  if (m.schema.cfg_hash != f.cfg_hash) {
    return Error{ErrorCode::kInvalidInput,
                 m.info.name + ": the host described the method differently this time"};
  }
  return f;
}

Result<std::unique_ptr<Version>> RuntimeImpl::make(Method& m, const jit::Function& f,
                                                   const Plan& plan) {
  if (stress_.active(StressKind::kCompile) && stress_.point(StressKind::kCompile)) {
    return Error{ErrorCode::kUnsupported, "compilation failed by the stress plan"};
  }
  if (stress_.active(StressKind::kCode) && stress_.point(StressKind::kCode)) {
    space_->fail_allocation(1);
  }
  uint64_t start = now_ns();
  CallPaths calls(*this, plan);
  jit::CompileInput in{f, m.id, helpers_, calls, *space_};
  Result<std::unique_ptr<jit::Code>> code = [&] {
    if (plan.tier == Tier::kBaseline)
      return jit::compile_baseline(
          in, {.copy = plan.copy,
               .loop_checks = options_.tier != TierMode::kBaseline || !options_.stress.empty()});
    std::vector<uint64_t> counts;
    if (plan.use_profile) {
      std::lock_guard lock(state_mutex_);
      counts = observer_.block_estimates(m);
    }
    return jit::compile_optimized(in, {.block_counts = counts, .osr_loop = plan.osr_loop});
  }();
  if (!code) return code.error();
  auto v = std::make_unique<Version>();
  v->tier = plan.tier;
  v->copy = plan.copy;
  v->osr_loop = plan.osr_loop;
  v->code = std::move(*code);
  v->code->set_method(m.id);
  v->code_bytes = v->code->size();
  v->compile_ns = now_ns() - start;
  return v;
}

// The first call of a method, on any thread: returns whether it has code now.
bool RuntimeImpl::first_call(Method& m) {
  std::lock_guard compile(m.compile_mutex);
  if (current_entry(m) != nullptr) return true;
  if (m.failed.load(std::memory_order_relaxed)) return false;
  Status s = compile_first(m);
  if (s) return true;
  std::lock_guard lock(state_mutex_);
  m.last_error = s.error().message;
  losses_.compiles_failed++;
  m.failed.store(true, std::memory_order_relaxed);
  return false;
}

Status RuntimeImpl::compile_first(Method& m) {
  Result<jit::Function> f = describe(m);
  if (!f) return f.error();
  std::vector<Plan> plans;
  if (options_.tier == TierMode::kOptimized) {
    plans = {{.method = m.id, .tier = Tier::kOptimized}, {.method = m.id}};
  } else {
    // The instrumented copy waits for the first sample, unless no sample may be missed.
    bool both =
        schedule_.sample_calls && (always_instrumented_ || options_.gap == GapMode::kExact ||
                                   options_.workers == 0 || stress_.active(StressKind::kCopy));
    plans = {{.method = m.id}};
    if (both) plans.push_back({.method = m.id, .copy = Copy::kInstrumented});
  }
  for (const Plan& plan : plans) {
    Result<std::unique_ptr<Version>> v = make(m, *f, plan);
    std::lock_guard lock(state_mutex_);
    if (v) {
      install(m, std::move(*v));
      // With an optimized version the baseline is only for what the compiler could not do.
      if (plan.tier == Tier::kOptimized) break;
      continue;
    }
    m.last_error = v.error().message;
    // The plain copy is what everything else falls back to.
    if (plan.tier == Tier::kBaseline && plan.copy == Copy::kPlain) return v.error();
    losses_.compiles_failed++;
  }
  return {};
}

// Worker's side: one plan from the queue.
void RuntimeImpl::compile_and_install(const Plan& plan) {
  Method& m = method(plan.method.index());
  std::lock_guard compile(m.compile_mutex);
  {
    std::lock_guard lock(state_mutex_);
    if (m.removed) return;
  }
  Result<jit::Function> f = describe(m);
  Result<std::unique_ptr<Version>> v =
      f ? make(m, *f, plan) : Result<std::unique_ptr<Version>>(f.error());
  std::lock_guard lock(state_mutex_);
  forget_request(m, plan);
  if (m.removed) return;
  if (v) return install(m, std::move(*v));
  m.last_error = v.error().message;
  bool refused = v.error().code == ErrorCode::kResourceExhausted;
  (refused ? losses_.code_refused : losses_.compiles_failed)++;
  // Failing to optimize is never failing to run; asking for the same again would fail the same.
  if (plan.tier == Tier::kOptimized) m.optimize_failed = true;
}

// A callee that is at its best needs no counting: reach its code through the cell, past the stub,
// or directly where it is the code that is being made.
jit::CallTarget RuntimeImpl::CallPaths::target(MethodId callee) {
  using Kind = jit::CallTarget::Kind;
  const jit::StubTable& stubs = *runtime_.stubs_;
  Method& m = runtime_.method(callee.index());
  bool counts_all = runtime_.options_.gap == GapMode::kExact;
  if (counts_all || plan_.tier == Tier::kBaseline) return {Kind::kStub, stubs.stub(callee)};
  if (callee == plan_.method && !plan_.osr_loop.valid()) return {Kind::kSelf, nullptr};
  bool best = m.optimized.load(std::memory_order_acquire) != nullptr;
  if (best) return {Kind::kCell, stubs.cell(callee)};
  return {Kind::kStub, stubs.stub(callee)};
}

}  // namespace uptier::tiering
