#include "jit/opt/inline_calls.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

#include "jit/analysis/frequencies.h"
#include "jit/analysis/known_counts.h"
#include "jit/frontend/attach_deopts.h"
#include "jit/opt/devirtualize.h"
#include "jit/opt/passes.h"
#include "jit/opt/place_target_probes.h"
#include "jit/opt/splice.h"
#include "jit/opt/uncommon_traps.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kTiny = 12;
constexpr uint32_t kSmallLeaf = 20;
constexpr uint32_t kMostHot = 120;
constexpr uint32_t kMostLooping = 40;
constexpr float kFewLoopRounds = 1.5f;  // of a loop, per entry
constexpr float kHotShare = 1.0f / 200;
constexpr uint32_t kDeepest = 6;
constexpr uint32_t kMostNested = 2;  // of a method inside itself
// Share of the executions of an indirect call that earlier targets leave.
constexpr double kInlinedTarget = 0.2;
constexpr double kCalledTarget = 0.6;
constexpr double kLeastTarget = 0.02;  // share of all its executions
constexpr size_t kMostTargets = 3;
// The size before simplification: larger bodies will not become small enough.
constexpr size_t kMostAsBuilt = 1000;

uint32_t size_of(const Function& f) {
  uint32_t size = 0;
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) {
      Opcode op = f.inst(i).op;
      bool nothing = op == Opcode::kProbe || op == Opcode::kConst || op == Opcode::kJump ||
                     op == Opcode::kFrameState;
      size += nothing ? 0 : 1;
    }
  }
  return size;
}

bool has_calls(const Function& f) {
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) {
      Shape s = info(f.inst(i).op).shape;
      if (s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost) return true;
    }
  }
  return false;
}

// Returns how often blocks run per entry, by block site - 1, estimated from the function's shape.
std::vector<float> counts_by_shape(const Function& f, const Frequencies& q) {
  std::vector<float> counts(f.block_sites);
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) {
      const Inst& p = f.inst(i);
      if (is_block_probe(p) && p.body == 0) counts[p.aux - 1] = q.at(b);
    }
  }
  return counts;
}

// Returns the blocks of the loop headers; 0 for a header whose block is not known.
std::vector<SiteId> headers_of(const Function& f, const LoopNest& loops) {
  std::vector<SiteId> headers;
  for (const LoopNest::Loop& l : loops.loops) {
    const Inst* probe = first_block_probe(f, l.header);
    headers.push_back(probe == nullptr ? 0 : probe->aux);
  }
  return headers;
}

// Returns whether a call spends its time in a loop.
bool spins(const std::vector<SiteId>& headers, const std::vector<float>& counts) {
  return std::ranges::any_of(headers, [&](SiteId s) {
    return s == 0 || s > counts.size() || counts[s - 1] > kFewLoopRounds;
  });
}

// A callee, prepared for copying.
struct Body {
  Function function;
  const Inlinee* source = nullptr;
  bool fits = false;
  bool guarded = false;  // has guards, which need frames of its callers too
  bool leaf = false;
  std::vector<SiteId> headers;  // blocks of its loops' headers; 0: not known
  uint32_t size = 0;
  std::vector<float> counts;  // by block site - 1, per entry
  float sample = 1;           // executions that one observed execution stands for
  double entries = 1;         // entries that its profile's counts stand for
};

// Attaches deoptimization targets to everything that may leave the body: its guards, for tests the
// starts of its blocks, and the guards of bodies that will be inlined into it.
void speculate(Function& f, const Inlinee& source, bool ask) {
  const Function& built = source.function;
  Liveness live = compute_liveness(built);
  FrameLayout frame = layout_frame(built, live);
  DeoptContext c{live, frame, count_guards(built), ask};
  attach_deopts(f, c, source.to_host);
  if (ask) add_block_guards(f, c);
  if (source.uncommon_traps)
    uncommon_traps(f, c, {source.profile.blocks, source.kept, LoopId::none()});
  attach_call_states(f, built, c);
}

// `observed`: the probes to keep; null: none.
void simplify(Function& f, const ProbePlan* observed) {
  settle_counts(f);
  strip_unobserved(f, observed);
  if (observed != nullptr) place_target_probes(f, *observed);
  remove_redundant_phis(f);
  sccp(f);
  simplify_arithmetic(f);
  simplify_cfg(f);
  remove_redundant_phis(f);
  gvn(f);
  dce(f);
}

bool observes(const ProbePlan& plan) {
  return std::ranges::any_of(plan.sites, [](const ProbePlan::Site& s) {
    return s.offset != ProbePlan::kNone && !s.of_call;
  });
}

// Replaces the body of an instrumented copy by one with its probes. The size was measured without
// them, so that values which only probes keep alive do not prevent an inlining that plain code
// does.
void observe(Body& b, Function built, const SiteProbeRequest& r) {
  ProbePlan plan;
  plan_sites(b.source->function, r, plan);
  if (!observes(plan)) return place_target_probes(b.function, plan);
  simplify(built, &plan);
  b.function = std::move(built);
}

Body prepare(const Inlinee& source, const InlineRequest& r) {
  Body b;
  b.source = &source;
  if (source.function.insts.size() > kMostAsBuilt) return b;
  b.function = source.function;
  Function& f = b.function;
  if (r.speculates) speculate(f, source, r.ask_to_leave);
  b.guarded = count_guards(f) != 0;
  if (!can_splice(f)) return b;
  Function built;
  if (r.observed != nullptr) built = f;
  simplify(f, nullptr);
  b.size = size_of(f);
  b.leaf = !has_calls(f);
  ControlFlow control = analyze_control_flow(f);
  LoopNest loops = find_loops(f, control);
  const std::vector<uint64_t>& seen = source.profile.blocks;
  if (seen.empty() || seen[0] == 0) {
    b.counts = counts_by_shape(f, estimate_frequencies(f, control, loops, BlockCounts()));
  } else {
    b.entries = static_cast<double>(seen[0]);
    b.sample = static_cast<float>(source.profile.sample / b.entries);
    for (uint64_t c : seen) {
      b.counts.push_back(static_cast<float>(static_cast<double>(c) / b.entries));
    }
  }
  b.headers = headers_of(f, loops);
  b.fits = b.size <= kMostHot;
  if (b.fits && r.observed != nullptr) observe(b, std::move(built), *r.observed);
  return b;
}

class Inliner {
 public:
  Inliner(Function& f, const InlineRequest& r) : f_(f), r_(r), invariant_(f) {
    if (!r.counts.empty()) counts_ = BlockCounts(r.counts, r.sample);
    has_profile_ = !counts_.empty();
  }

  BlockCounts run() {
    if (r_.source != nullptr) {
      if (!has_profile_) guess_counts();
      size_t left = inlining_room(size_of(f_));
      find_top();
      std::vector<Block> blocks = f_.layout;
      for (Block b : blocks) scan(b);
      grow(left);
      drop_call_states(f_);
    }
    return has_profile_ ? std::move(counts_) : BlockCounts();
  }

 private:
  struct Candidate {
    double score;
    uint32_t order;  // the first of equal ones wins
    InstId call;
    float count;
    Body* body;  // null: an indirect call

    bool operator<(const Candidate& o) const {
      return score != o.score ? score < o.score : order > o.order;
    }
  };

  void guess_counts() {
    ControlFlow control = analyze_control_flow(f_);
    LoopNest loops = find_loops(f_, control);
    Frequencies q = estimate_frequencies(f_, control, loops, BlockCounts());
    counts_ = BlockCounts();
    counts_.add(counts_by_shape(f_, q));
  }

  void find_top() {
    for (Block b : f_.layout) {
      const Inst* probe = first_block_probe(f_, b);
      if (probe != nullptr) top_ = std::max(top_, counts_.at(*probe));
    }
  }

  // Records the calls of a block, and considers those from instruction number `first` on. `state`:
  // the call state for a first call whose own is in another block.
  void scan(Block b, uint32_t first = 0, InstId state = InstId::none()) {
    rescan(b);
    float count = 0;
    for (InstId i : f_.block(b).insts) {
      const Inst& inst = f_.inst(i);
      if (is_block_probe(inst)) count = counts_.at(inst);
      if (is_call_state(inst)) state = i;
      if (!returns_to_point(inst.op)) continue;
      if (state.valid()) states_[i.index()] = std::exchange(state, InstId::none());
      if (i.index() < first) continue;
      inst.op == Opcode::kCall ? consider(i, count) : consider_indirect(i, count);
    }
  }

  // Records the block again for each instruction, after it was split. Nothing else changes for
  // calls recorded before.
  void rescan(Block b) {
    if (block_of_.size() < f_.insts.size()) block_of_.resize(f_.insts.size());
    for (InstId i : f_.block(b).insts) block_of_[i.index()] = b;
  }

  bool hot(float count) const { return has_profile_ && count > 0 && count >= kHotShare * top_; }

  Body* body_of(MethodId m) {
    auto [at, fresh] = bodies_.try_emplace(m.index());
    if (fresh) {
      const Inlinee* known = r_.source->find(m);
      at->second = std::make_unique<Body>(known == nullptr ? Body{} : prepare(*known, r_));
    }
    return at->second->fits ? at->second.get() : nullptr;
  }

  // Returns whether a call of `m` in `body` is neither nested too deep nor too often inside `m`
  // itself. Inlining a level of a recursion saves one call but leads to the next, so the call has
  // to be hot.
  bool may_nest(uint32_t body, MethodId m, float count) const {
    uint32_t depth = 1;
    uint32_t around = m == r_.self ? 1 : 0;  // bodies of m that contain the call
    for (; body != 0; body = f_.inlined[body - 1].parent, ++depth) {
      if (f_.inlined[body - 1].method == m) ++around;
    }
    return depth <= kDeepest && (around == 0 || (around <= kMostNested && hot(count)));
  }

  // Whether the body spends its time in a loop depends on who calls it.
  bool worth(const Inst& call, MethodId callee, const Body& b, float count) const {
    if (count <= 0) return false;
    if (b.size <= kTiny) return true;
    if (!has_profile_) return b.leaf && b.size <= kSmallLeaf && !spins(b.headers, b.counts);
    if (!hot(count) || b.size > kMostHot) return false;
    return b.size <= kMostLooping || b.headers.empty() ||
           !spins(b.headers, counts_at(call, callee, b));
  }

  Body* inlinable(InstId call, MethodId m, const Signature& signature, float count) {
    if (!may_nest(f_.inst(call).body, m, count)) return nullptr;
    Body* b = body_of(m);
    bool fits = b != nullptr && b->function.signature() == signature &&
                worth(f_.inst(call), m, *b, count) && (!b->guarded || state_of(call).valid());
    return fits ? b : nullptr;
  }

  // Returns the call state, which tells where the call returns to. A guessed direct call has the
  // state of the indirect call that it was made from.
  InstId state_of(InstId call) const {
    auto at = states_.find(call.index());
    return at == states_.end() ? InstId::none() : at->second;
  }

  void push(InstId call, float count, uint32_t size, Body* body) {
    queue_.push({count / (size + 10.0), next_++, call, count, body});
  }

  void consider(InstId id, float count) {
    const Inst& call = f_.inst(id);
    MethodId callee = f_.callees[call.imm].method;
    Body* b = inlinable(id, callee, f_.signature_of(call), count);
    if (b != nullptr) push(id, count, b->size, b);
  }

  // A test is cheap, so it comes before the bodies of its targets: its size counts as 0.
  void consider_indirect(InstId id, float count) {
    if (hot(count) && targets_of(f_.inst(id)) != nullptr) push(id, count, 0, nullptr);
  }

  const SiteTargets* targets_of(const Inst& call) const {
    std::span<const SiteTargets> known = r_.targets;
    if (call.body != 0) {
      const SiteTargets* here = site_in(targets_here(call.body), call.site);
      if (here != nullptr) return here;
      known = bodies_of_inlined_[call.body - 1]->source->profile.targets;
    }
    return site_in(known, call.site);
  }

  static const SiteTargets* site_in(std::span<const SiteTargets> known, SiteId site) {
    auto at = std::ranges::find(known, site, &SiteTargets::site);
    return at == known.end() || at->total == 0 ? nullptr : &*at;
  }

  // Returns the observed targets of the calls in a body at this place.
  std::span<const SiteTargets> targets_here(uint32_t body) const {
    if (!has_profile_) return {};
    const std::vector<SiteTargets>* here = r_.source->find_targets(path_of(body));
    return here == nullptr ? std::span<const SiteTargets>() : *here;
  }

  InlinePath path_of(uint32_t body) const {
    InlinePath path;
    for (; body != 0; body = f_.inlined[body - 1].parent) {
      path.push_back({f_.inlined[body - 1].site, f_.inlined[body - 1].method});
    }
    std::ranges::reverse(path);
    return path;
  }

  void grow(size_t left) {
    while (!queue_.empty()) {
      Candidate c = queue_.top();
      queue_.pop();
      if (c.body == nullptr) {
        ask(c);
      } else if (c.body->size <= left) {
        left -= c.body->size;
        put(c);
      }
    }
  }

  size_t position(InstId call) const {
    const auto& insts = f_.block(block_of_[call.index()]).insts;
    return static_cast<size_t>(std::find(insts.begin(), insts.end(), call) - insts.begin());
  }

  void put(const Candidate& c) {
    Block at = block_of_[c.call.index()];
    MethodId callee = f_.callees[f_.inst(c.call).imm].method;
    bodies_of_inlined_.push_back(c.body);
    std::vector<float> counts = counts_at(f_.inst(c.call), callee, *c.body);
    for (float& n : counts) n *= c.count;
    counts_.add(std::move(counts), c.body->sample * c.count);
    uint32_t before = static_cast<uint32_t>(f_.insts.size());
    InstId state = state_of(c.call);
    Spliced s = splice(f_, at, position(c.call), c.body->function, callee, invariant_, state);
    rescan(s.rest);
    // Calls that were in the block have been considered; calls of the body have not.
    scan(at, before);
    for (Block b : s.blocks) scan(b);
  }

  // Returns how often the blocks of a body run per entry. Counts of the body at this place take
  // precedence over those of its method in all places.
  std::vector<float> counts_at(const Inst& call, MethodId callee, const Body& b) const {
    std::vector<float> counts = b.counts;
    if (!has_profile_) return counts;
    InlinePath path = path_of(call.body);
    path.push_back({call.site, callee});
    const InlinedBlocks* here = r_.source->find_blocks(path);
    bool entered = here != nullptr && !here->known.empty() && here->known[0] && here->counts[0] > 0;
    if (!entered) return counts;
    for (size_t s = 0; s < std::min(counts.size(), here->counts.size()); ++s) {
      if (here->known[s]) counts[s] = static_cast<float>(here->counts[s] / here->counts[0]);
    }
    return counts;
  }

  void ask(const Candidate& c) {
    const SiteTargets& seen = *targets_of(f_.inst(c.call));
    std::vector<Guess> guesses = guess(c.call, seen, c.count);
    if (guesses.empty()) return;
    Block at = block_of_[c.call.index()];
    InstId state = state_of(c.call);
    Devirtualized d = devirtualize(f_, at, position(c.call), guesses, seen.total);
    rescan(at);
    rescan(d.rest);
    rescan(d.other);
    for (Block b : d.direct) scan(b, 0, state);
  }

  std::vector<Guess> guess(InstId id, const SiteTargets& seen, float count) {
    std::vector<Guess> guesses;
    const Inst& call = f_.inst(id);
    const Signature& signature = f_.signature_of(call);
    auto total = static_cast<double>(seen.total), left = total;
    for (const TargetShare& t : seen.targets) {
      double share = static_cast<double>(t.count) / total;
      double of_left = left > 0 ? static_cast<double>(t.count) / left : 0;
      if (guesses.size() == kMostTargets || share < kLeastTarget) break;
      if (of_left < kInlinedTarget) break;
      if (t.signature != signature || t.entry == nullptr) continue;
      Body* b = inlinable(id, t.method, signature, static_cast<float>(count * share));
      if (b == nullptr && of_left < kCalledTarget) continue;
      left -= static_cast<double>(t.count);
      guesses.push_back({&t, b == nullptr ? Value::none() : likely_first_argument(call, *b)});
    }
    return guesses;
  }

  // If the callee makes an invariant load from its first argument, and the function makes the same
  // load from a parameter of its own, the two are likely to be equal: the host's context.
  Value likely_first_argument(const Inst& call, const Body& b) const {
    auto args = f_.args(call);
    auto params = b.function.params(b.function.entry());
    if (args.size() < 2 || f_.type_of(args[1]) != Type::kRef) return Value::none();
    for (Block block : b.function.layout) {
      for (InstId i : b.function.block(block).insts) {
        const Inst& load = b.function.inst(i);
        bool takes = info(load.op).shape == Shape::kLoad && (load.flags & kMemInvariant) != 0 &&
                     load.args.size == 1 && b.function.args(load)[0] == params[0];
        Value base = takes ? invariant_.base_of(load) : Value::none();
        if (base.valid() && base != args[1] && is_entry_param(base)) return base;
      }
    }
    return Value::none();
  }

  bool is_entry_param(Value v) const {
    const ValueData& d = f_.value(v);
    return !d.inst.valid() && d.block == f_.entry() && d.type == Type::kRef;
  }

  Function& f_;
  const InlineRequest& r_;
  InvariantPlaces invariant_;
  BlockCounts counts_;
  bool has_profile_ = false;
  float top_ = 0;
  std::map<uint32_t, std::unique_ptr<Body>> bodies_;  // by MethodId::index()
  std::vector<Body*> bodies_of_inlined_;              // by index of Function::inlined
  std::priority_queue<Candidate> queue_;
  uint32_t next_ = 0;
  std::vector<Block> block_of_;        // by InstId
  std::map<uint32_t, InstId> states_;  // of calls, by InstId::index()
};

}  // namespace

BlockCounts inline_calls(Function& f, const InlineRequest& r) { return Inliner(f, r).run(); }

}  // namespace uptier::jit
