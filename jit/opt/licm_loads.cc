// Loop-invariant code motion of loads. If each iteration of a loop starts with a load, of a place
// that the loop does not write, the load is done once, in front of the loop:
//
//     p:                               p:
//       branch c, loop(x), out           branch c, t, out
//     loop(i):                         t:
//       n = load a+8 class 2     ->      n = load a+8 class 2
//       guard i < n                      jump loop(x)
//       ...                            loop(i):
//                                        guard i < n
//                                        ...
//
// Entering the loop executes this load anyway: it is in the header, and nothing before it may
// leave, trap, write or call (except a poll, which only asks whether to leave). So nothing is read
// that was not read before, and it need not be proved that the address may be read. Loads after a
// guard leave the loop when its first iteration is peeled (peel_loops).
//
// Loads of alias class 0 stay: each iteration must read them again. Inner loops come first, so that
// a load leaves as many loops as possible. A hoisted value costs a register, or a word of the
// frame, which is read no slower than the original place. kMostLoads limits the loads hoisted from
// one loop.
#include <algorithm>

#include "jit/analysis/counted_loop.h"
#include "jit/analysis/memory_place.h"
#include "jit/opt/loop_preheader.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr size_t kMostLoads = 6;           // out of one loop
constexpr unsigned kMostAddressDepth = 4;  // operations that an address depends on
constexpr uint8_t kEffects = kReads | kWrites | kCanTrap | kPinned | kEndsBlock;

class LoadHoister {
 public:
  LoadHoister(Function& f, bool counting) : f_(f), counting_(counting) {}

  void run() {
    if (!any_load()) return;
    control_ = analyze_control_flow(f_);
    loops_ = find_loops(f_, control_);
    for (loop_ = 0; loop_ < loops_.loops.size(); ++loop_) {
      if (header() == f_.entry()) continue;
      std::vector<InstId> loads = first_loads();
      if (loads.empty()) continue;
      Writes writes = writes_of_loop();
      std::erase_if(loads, [&](InstId i) { return writes.may_touch(place_of(f_, f_.inst(i))); });
      loads.resize(std::min(loads.size(), kMostLoads));
      if (!loads.empty()) hoist(loads);
    }
  }

 private:
  Block header() const { return loops_.loops[loop_].header; }

  static bool may_be_read_once(const Inst& i) {
    return info(i.op).shape == Shape::kLoad && alias_class_of(i.flags) != 0;
  }

  bool any_load() const {
    return std::ranges::any_of(f_.layout, [&](Block b) {
      return std::ranges::any_of(f_.block(b).insts,
                                 [&](InstId i) { return may_be_read_once(f_.inst(i)); });
    });
  }

  // Returns the loads at the start of each iteration that may be done once and whose addresses do
  // not depend on the loop.
  std::vector<InstId> first_loads() const {
    std::vector<InstId> loads;
    for (InstId id : f_.block(header()).insts) {
      const Inst& i = f_.inst(id);
      bool load = info(i.op).shape == Shape::kLoad;
      bool traps = load && (i.flags & kMemTraps) != 0;
      if (load && may_be_read_once(i) && !(traps && counting_) && can_leave(i, 0)) {
        loads.push_back(id);
      } else if (traps || (!load && ends_beginning(i))) {
        break;
      }
    }
    return loads;
  }

  // Returns whether a load after the instruction might not be reached, or might read another value.
  bool ends_beginning(const Inst& i) const {
    if (i.op == Opcode::kProbe || i.op == Opcode::kFrameState) return false;
    if (i.op == Opcode::kGuard) return constant_of(f_, f_.args(i)[0]).value_or(0) == 0;
    return (info(i.op).effects & kEffects) != 0;
  }

  bool inside(Value v) const { return loops_.contains(loop_, f_.value(v).block); }

  // Returns whether the operands, recursively, can be computed outside of the loop.
  bool can_leave(const Inst& i, unsigned depth) const {
    return std::ranges::all_of(f_.args(i), [&](Value v) {
      if (!inside(v)) return true;
      InstId from = f_.value(v).inst;
      if (!from.valid() || depth == kMostAddressDepth) return false;
      return (info(f_.inst(from).op).effects & kEffects) == 0 &&
             can_leave(f_.inst(from), depth + 1);
    });
  }

  Writes writes_of_loop() const {
    Writes writes;
    for (Block b : f_.layout) {
      if (loops_.contains(loop_, b)) writes.add(f_, b);
    }
    return writes;
  }

  void hoist(const std::vector<InstId>& loads) {
    Block before = block_before();
    for (InstId i : loads) move(i, before);
  }

  // Moves an instruction to the end of the block, after its operands.
  void move(InstId id, Block before) {
    for (uint32_t n = 0; n < f_.inst(id).args.size; ++n) {
      Value v = f_.args(f_.inst(id))[n];
      if (inside(v)) move(f_.value(v).inst, before);
    }
    Value result = f_.inst(id).result;
    std::erase(f_.block(f_.value(result).block).insts, id);
    f_.value(result).block = before;
    auto& insts = f_.block(before).insts;
    insts.insert(insts.end() - 1, id);
  }

  // Returns a block from which control goes only to the loop; makes it if there is none.
  Block block_before() {
    std::vector<Predecessor> in;
    for (const Predecessor& p : control_.preds[header().index()]) {
      if (!loops_.contains(loop_, p.from)) in.push_back(p);
    }
    if (in.size() == 1 && f_.terminator(in[0].from).op == Opcode::kJump) return in[0].from;
    LoopPreheader e(f_, header(), in);
    std::vector<Value> params(f_.params(e.block()).begin(), f_.params(e.block()).end());
    e.end({.op = Opcode::kJump}, {{header(), f_.make_list(params)}});
    loops_.loop_of.resize(f_.blocks.size(), kNoLoop);
    loops_.loop_of[e.block().index()] = loops_.loops[loop_].parent;
    return e.block();
  }

  Function& f_;
  const bool counting_;
  ControlFlow control_;  // as of before blocks were added
  LoopNest loops_;
  uint32_t loop_ = 0;  // the loop being examined
};

}  // namespace

void licm_loads(Function& f, bool counting) { LoadHoister(f, counting).run(); }

}  // namespace uptier::jit
