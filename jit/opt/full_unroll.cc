// Full unrolling and peeling. For a loop without calls:
//
//   size     its instructions, without constants, probes and jumps
//   trips    the number of iterations, if constants determine it
//   rounds   the average number of iterations, by the profile
//
// full_unroll runs before loop rotation:
//
//   trips <= 8, size * trips <= 200   the whole loop is unrolled. Its tests become constant, and values
//                                     that it passes through memory are forwarded. Inner loops come
//                                     first: unrolling one may make the trips of the outer one constant
//
// peel_loops runs after it, on inner loops:
//
//   rounds <= 2.5, size <= 60         the first 1 or 2 iterations are peeled: copied in front of the
//                                     loop, which is then rarely reached
//   size <= 60, and every iteration   the first iteration is peeled: it loads and checks for all the
//   loads or checks the same          others (store_to_load_forwarding, conditional_elimination)
//
// Loops that are rare by the profile stay as they are. A function grows by kMostUnrollGrowth at
// most.
#include <algorithm>

#include "jit/analysis/memory_place.h"
#include "jit/analysis/trip_count.h"
#include "jit/opt/copy_loop.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostTrips = 8;
constexpr uint32_t kMostWhole = 200;
constexpr uint32_t kMostPeeled = 60;
constexpr float kFewRounds = 2.5f;
constexpr float kHotHeaderShare = 1.0f / 200;  // of the most frequent block
constexpr uint32_t kMostPassRounds = 3;        // how often the pass is repeated
constexpr size_t kMostUnrollGrowth = 2'000;    // instructions added to a function

class LoopUnroller {
 public:
  // `whole`: unrolls loops completely; otherwise peels their first iterations.
  LoopUnroller(Function& f, const BlockCounts& counts, bool whole)
      : f_(f), counts_(counts), whole_(whole), most_insts_(f.insts.size() + kMostUnrollGrowth) {}

  bool round() {
    if (!goes_back()) return false;
    control_ = analyze_control_flow(f_);
    loops_ = find_loops(f_, control_);
    if (loops_.loops.empty()) return false;
    collect();
    finished_.resize(f_.blocks.size());
    std::vector<bool> touched(loops_.loops.size());
    std::vector<Redefinition> redefined;
    for (uint32_t l = 0; l < loops_.loops.size(); ++l) {
      uint32_t up = loops_.loops[l].parent;
      if (!touched[l] && f_.insts.size() <= most_insts_) touched[l] = write_out(l, redefined);
      if (touched[l] && up != kNoLoop) touched[up] = true;
    }
    if (redefined.empty()) return false;
    repair_ssa(f_, redefined);
    remove_redundant_phis(f_);
    sccp(f_);
    simplify_arithmetic(f_);
    simplify_cfg(f_);
    remove_redundant_phis(f_);
    return true;
  }

 private:
  // Returns whether there can be a loop, quickly.
  bool goes_back() const {
    std::vector<uint32_t> position = layout_positions(f_);
    return std::any_of(f_.layout.begin(), f_.layout.end(), [&](Block b) {
      auto edges = f_.successors(b);
      return std::any_of(edges.begin(), edges.end(), [&](const Edge& e) {
        return position[e.to.index()] <= position[b.index()];
      });
    });
  }

  // Collects the blocks of each loop, its header first, and the count of the most frequent block.
  void collect() {
    members_.assign(loops_.loops.size(), {});
    top_ = 0;
    for (Block b : control_.order()) {
      for (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop; l = loops_.loops[l].parent) {
        members_[l].push_back(b);
      }
      top_ = std::max(top_, count_of(b));
    }
  }

  float count_of(Block b) const {
    const Inst* probe = counts_.empty() ? nullptr : first_block_probe(f_, b);
    return probe != nullptr ? counts_.at(*probe) : 0;
  }

  bool write_out(uint32_t l, std::vector<Redefinition>& redefined) {
    Block header = loops_.loops[l].header;
    if (is_rare(header) || finished_[header.index()]) return false;
    uint32_t size = size_of_copy(f_, members_[l], kMostWhole);
    if (size == 0) return false;
    uint32_t copies = whole_ ? all_rounds(l, size) : first_rounds(l, size);
    if (copies == 0) return false;
    copy_loop(f_, members_[l], copies, redefined);
    finished_[header.index()] = true;
    return true;
  }

  // A loop that no sample met may still run as often as one sample stands for.
  bool is_rare(Block header) const {
    if (counts_.empty()) return false;
    const Inst* probe = first_block_probe(f_, header);
    float one = probe != nullptr ? counts_.sample(*probe) : 0;
    return std::max(count_of(header), one) < kHotHeaderShare * top_;
  }

  bool is_inner(uint32_t l) const {
    return std::all_of(members_[l].begin(), members_[l].end(),
                       [&](Block b) { return loops_.loop_of[b.index()] == l; });
  }

  // Returns the number of iterations to copy: all but the last, which the loop itself executes.
  uint32_t all_rounds(uint32_t l, uint32_t size) const {
    auto trips = count_trips(f_, control_, loops_, l, std::min(kMostTrips, kMostWhole / size));
    return trips ? *trips - 1 : 0;
  }

  // Returns the number of iterations to peel off an inner loop.
  uint32_t first_rounds(uint32_t l, uint32_t size) const {
    if (size > kMostPeeled || !is_inner(l)) return 0;
    Block header = loops_.loops[l].header;
    float entered = 0;
    for (const Predecessor& p : control_.preds[header.index()]) {
      if (!loops_.contains(l, p.from)) entered += count_of(p.from);
    }
    const Inst* probe = first_block_probe(f_, header);
    bool known = entered > 0 && probe != nullptr && counts_.seen(*probe) >= kLeastSeen;
    float rounds = known ? count_of(header) / entered : 0;
    if (rounds >= 0.5f && rounds <= kFewRounds) return static_cast<uint32_t>(rounds + 0.5f);
    return repeats_itself(l) ? 1 : 0;
  }

  bool every_round(uint32_t l, Block b) const {
    const auto& preds = control_.preds[loops_.loops[l].header.index()];
    return std::all_of(preds.begin(), preds.end(), [&](const Predecessor& p) {
      return !loops_.contains(l, p.from) || control_.dominates(b, p.from);
    });
  }

  // Returns whether each iteration loads from the same place, which the loop does not write to, or
  // has a guard or trap on the same condition.
  bool repeats_itself(uint32_t l) const {
    Writes writes;
    for (Block b : members_[l]) writes.add(f_, b);
    std::vector<Value> same;  // pure operations in the loop, with operands that do not change
    auto is_same = [&](Value v) {
      return !loops_.contains(l, f_.value(v).block) ||
             std::find(same.begin(), same.end(), v) != same.end();
    };
    for (Block b : members_[l]) {
      if (!every_round(l, b)) continue;
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        bool asks = i.op == Opcode::kGuard || i.op == Opcode::kTrapIf;
        auto args = asks ? f_.args(i).first(1) : f_.args(i);
        if (!std::all_of(args.begin(), args.end(), is_same)) continue;
        bool loads = info(i.op).shape == Shape::kLoad && (i.flags & kMemInvariant) == 0 &&
                     alias_class_of(i.flags) != 0 && !writes.may_touch(place_of(f_, i));
        bool settled = asks && f_.value(args[0]).inst.valid() &&
                       f_.inst(f_.value(args[0]).inst).op != Opcode::kConst;
        if (loads || settled) return true;
        bool pure = (info(i.op).effects & ~kCommutes) == 0;
        if (pure && i.result.valid()) same.push_back(i.result);
      }
    }
    return false;
  }

  Function& f_;
  const BlockCounts& counts_;
  const bool whole_;
  const size_t most_insts_;
  ControlFlow control_;
  LoopNest loops_;
  std::vector<std::vector<Block>> members_;  // by loop, inner loops included
  std::vector<bool> finished_;               // by Block::index(): a header that was handled
  float top_ = 0;
};

}  // namespace

void full_unroll(Function& f, const BlockCounts& counts) {
  LoopUnroller u(f, counts, true);
  for (uint32_t n = 0; n < kMostPassRounds && u.round(); ++n) {}
}

void peel_loops(Function& f, const BlockCounts& counts) { LoopUnroller(f, counts, false).round(); }

}  // namespace uptier::jit
