#include <algorithm>
#include <optional>

#include "jit/compile/compile.h"
#include "jit/opt/optimize.h"
#include "jit/opt/osr_entry.h"
#include "jit/opt/passes.h"
#include "jit/opt/poll_loops.h"
#include "jit/opt/specialize_memcpy.h"
#include "jit/opt/uncommon_traps.h"
#include "jit/opt/value_speculation.h"
#include "jit/probes/inlined_counts.h"
#include "jit/x64/emit.h"
#include "jit/x64/lower.h"
#include "jit/x64/macros.h"

namespace uptier::jit {
namespace {

// Larger functions stay in the baseline: time and memory grow with the number of live values.
constexpr size_t kMostInstructions = 1'000'000;

// Debug builds check the register allocation of functions up to this size; the checker is slow.
[[maybe_unused]] constexpr size_t kMostChecked = 3'000;

bool params_fit(const Function& f, const OptimizeRequest& r) {
  size_t count = f.signature().params.size();
  bool known = std::ranges::all_of(r.params, [&](const ParamValue& p) { return p.param < count; });
  return known && (r.params.empty() || !r.osr_loop.valid());
}

Status check_optimize(const CompileInput& in, const OptimizeRequest& r) {
  if (Status s = check_cpu(); !s.ok()) return s;
  if (in.function.insts.size() > kMostInstructions) {
    return Error{ErrorCode::kUnsupported, in.function.name + ": too many instructions"};
  }
  if (!in.function.layout.empty() && !params_fit(in.function, r)) {
    return Error{ErrorCode::kInvalidArgument, in.function.name + ": no such parameters to assume"};
  }
  if (find_frame_memory(in.function) != nullptr) {
    return Error{ErrorCode::kUnsupported,
                 in.function.name + ": so large that its variables are kept in memory"};
  }
  for (const HostCallee& c : in.function.host_callees) {
    if (c.address == nullptr) {
      return Error{ErrorCode::kUnsupported, "host function " + c.name + " has no address"};
    }
  }
  return {};
}

// Returns the counters of block probes, by block site - 1; empty for a plain copy.
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

// Returns the size of the slab's part for the method's own blocks.
uint32_t own_bytes(const Function& f, const OptimizeRequest& r) {
  return r.probes == nullptr ? 8 * f.block_sites : r.probes->bytes;
}

bool can_observe(const CompileInput& in, const OptimizeRequest& r) {
  bool can = in.helpers.probes[static_cast<uint32_t>(ProbeRoutine::kTarget)] != nullptr;
  return can && r.copy == Copy::kInstrumented && r.probes != nullptr;
}

bool observes_sites(const CompileInput& in, const OptimizeRequest& r) {
  return can_observe(in, r) && r.probes->has_sites();
}

// Returns the observations of inlined bodies in addition to their blocks, if there are any.
std::optional<SiteProbeRequest> inlined_sites(const CompileInput& in, const OptimizeRequest& r) {
  if (r.inlined_sites == nullptr || !can_observe(in, r)) return std::nullopt;
  SiteProbeRequest sites = *r.inlined_sites;
  sites.recent = sites.turns = false;
  sites.loops = {};
  return sites;
}

Error given_up(const CompileInput& in) {
  return Error{ErrorCode::kUnsupported, in.function.name + ": the compilation was given up"};
}

// Returns whether some block has never run according to the profile, and may become an exit.
bool may_prune(const OptimizeRequest& r) {
  return r.uncommon_traps && r.copy == Copy::kPlain &&
         std::find(r.block_counts.begin(), r.block_counts.end(), 0u) != r.block_counts.end();
}

bool may_guess(const OptimizeRequest& r) { return !r.values.empty() && r.copy == Copy::kPlain; }

// The words that a compilation took for its tallies: it gives them back unless code is made.
class WordsInHand {
 public:
  WordsInHand(const TallyRequest& r, const TallyTable& table) : source_(r.source), table_(table) {}
  ~WordsInHand() {
    if (table_.taken() != 0 && !kept_) source_->give_unused(table_.first(), table_.taken());
  }
  WordsInHand(const WordsInHand&) = delete;
  WordsInHand& operator=(const WordsInHand&) = delete;

  void keep() { kept_ = true; }

 private:
  TallySource* source_;
  const TallyTable& table_;
  bool kept_ = false;
};

// The body to compile, beginning at its entry.
class Body {
 public:
  Body(const CompileInput& in, const OptimizeRequest& r)
      : in_(in), r_(r), guards_(in.helpers.leave == nullptr ? 0 : count_guards(in.function)) {
    bool can_leave = in.helpers.leave != nullptr;
    states_calls_ = can_leave && r.inline_guards && r.inlinees != nullptr;
    if (can_leave && r.poll != nullptr) {
      polling_ = loops_that_poll(in.function, r.block_counts, r.poll_all);
      if (r.osr_loop.valid() && r.copy == Copy::kInstrumented) poll_at(r.osr_loop);
    }
    leaves_ = can_leave && (guards_ != 0 || may_prune(r) || may_guess(r) || r.ask_to_leave ||
                            !polling_.empty() || states_calls_);
  }

  Status make() {
    osr_ = r_.osr_loop.valid() && !r_.from_host;
    if (leaves_ || r_.osr_loop.valid()) live_ = compute_liveness(in_.function);
    if (leaves_ || osr_) frame_ = layout_frame(in_.function, live_);
    Function f = in_.function;
    if (leaves_) speculate(f);
    if (!r_.params.empty()) specialize_params(f, r_.params);
    if (r_.from_host) {
      auto entered = enter_from_host(f, r_.osr_loop, live_, r_.block_counts);
      if (!entered.ok()) return entered.error();
      body_.function = std::move(*entered);
    } else if (osr_) {
      auto entered = enter_at_loop(f, r_.osr_loop, live_, frame_, r_.block_counts);
      if (!entered.ok()) return entered.error();
      body_ = std::move(*entered);
    } else {
      body_.function = std::move(f);
    }
    if (r_.copy == Copy::kPlain) specialize_memcpy(body_.function, r_.values);
    return {};
  }

  bool osr() const { return osr_; }
  bool states_calls() const { return states_calls_; }
  uint32_t baseline_frame() const { return osr_ ? frame_.size : 0; }
  Function& function() { return body_.function; }
  std::span<const int32_t> slots() const { return body_.slots; }

 private:
  // A frame that is observed for some iterations of a loop polls at its header to learn when they
  // are over.
  void poll_at(LoopId loop) {
    auto at = std::ranges::lower_bound(polling_, loop);
    if (at == polling_.end() || *at != loop) polling_.insert(at, loop);
  }

  void speculate(Function& f) {
    DeoptContext c{live_, frame_, guards_, r_.ask_to_leave};
    attach_deopts(f, c, r_.to_host);
    if (r_.ask_to_leave) add_block_guards(f, c);
    if (!polling_.empty()) add_loop_polls(f, c, polling_);
    if (may_guess(r_)) value_speculation(f, c, r_.values, r_.osr_loop);
    if (may_prune(r_)) uncommon_traps(f, c, {r_.block_counts, r_.kept, r_.osr_loop});
    if (states_calls_) attach_call_states(f, in_.function, c);
  }

  const CompileInput& in_;
  const OptimizeRequest& r_;
  uint32_t guards_;
  std::vector<LoopId> polling_;
  bool leaves_ = false;
  bool states_calls_ = false;
  bool osr_ = false;
  Liveness live_;
  FrameLayout frame_;
  OsrFunction body_;
};

}  // namespace

Result<std::unique_ptr<Code>> compile_optimized(const CompileInput& in, const OptimizeRequest& r) {
  if (Status s = check_optimize(in, r); !s.ok()) return s.error();
  Result<std::vector<uint32_t>> counters = counters_of(in.function, r);
  if (!counters.ok()) return counters.error();
  Body body(in, r);
  if (Status s = body.make(); !s.ok()) return s.error();
  if (r.limit != nullptr && r.limit->over("attach_exits")) return given_up(in);
  Function& f = body.function();
  const ProbePlan* sites = observes_sites(in, r) ? r.probes : nullptr;
  std::optional<SiteProbeRequest> in_bodies = inlined_sites(in, r);
  Optimized o = optimize(f,
                         {.self = in.method,
                          .counts = r.block_counts,
                          .targets = r.targets,
                          .source = r.inlinees,
                          .speculates = body.states_calls(),
                          .ask_to_leave = r.ask_to_leave,
                          .sample = r.sample,
                          .observed = in_bodies ? &*in_bodies : nullptr},
                         r.observer, r.copy, sites, r.limit,
                         r.copy == Copy::kPlain ? r.tallies : TallyRequest{});
  WordsInHand words(r.tallies, o.tallies);
  if (o.given_up) return given_up(in);
  if (r.inlined_blocks != nullptr) *r.inlined_blocks = o.counts.of_inlined();
  std::vector<InlinedCount> inlined;
  std::vector<InlinedProbe> probes;
  if (r.copy == Copy::kInstrumented) {
    uint32_t at = own_bytes(in.function, r);
    inlined = place_inlined_counts(f, at);
    at += 8 * static_cast<uint32_t>(inlined.size());
    if (in_bodies) probes = place_inlined_probes(f, *in_bodies, inlined, at);
  }
  machine::MachineFunction insts =
      x64::lower({f, o.loops, o.frequencies, body.osr(), body.slots(), x64::has_bmi2(), *counters,
                  &inlined, sites, &probes, in.lines});
  if (r.limit != nullptr && r.limit->over("lower")) return given_up(in);
  machine::Allocation allocation = machine::allocate_registers(insts);
  if (r.limit != nullptr && r.limit->over("allocate_registers")) return given_up(in);
#ifndef NDEBUG
  if (insts.insts.size() <= kMostChecked) {
    std::string problem = machine::check_allocation(insts, allocation);
    if (!problem.empty()) {
      return Error{ErrorCode::kInvalidInput, in.function.name + ": " + problem};
    }
  }
#endif
  auto code =
      x64::emit({in, f, insts, allocation, body.osr(), body.baseline_frame(), r.poll, &inlined,
                 &probes, r.params, &o.tallies, in.block_rows || r.copy != Copy::kPlain});
  if (code.ok()) words.keep();
  return code;
}

}  // namespace uptier::jit
