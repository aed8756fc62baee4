// If fuel falls below 0 after one of several counts, it is below 0 after the last one too. So if
// nothing observable lies between two counts, the earlier one need not test, and its store is
// overwritten:
//
//   v = load fuel                              v = load fuel
//   w = sub v, 1; store w; trap_if w < 0   ->
//   x = sub w, 1; store x; trap_if x < 0       x = add v, -2; store x; trap_if x < 0
//
// The last count then traps. If the first one would have trapped, the word is now below -1; its
// readers treat every negative value as used up.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "jit/frontend/add_fuel.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

class FuelMerger {
 public:
  explicit FuelMerger(Function& f) : f_(f) {}

  void run() {
    for (Block b : f_.layout) merge(b);
  }

 private:
  // A value as the sum of another one and a constant.
  struct Sum {
    Value of;
    int64_t more = 0;
  };
  // A store of the fuel and the trap that tests the stored value.
  struct Count {
    InstId store, trap;
    Value left;
  };

  const Inst* def(Value v, Opcode op) const {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.inst(i).op == op ? &f_.inst(i) : nullptr;
  }
  std::optional<int64_t> constant(Value v) const {
    const Inst* c = def(v, Opcode::kConst);
    return c == nullptr ? std::nullopt : std::optional(static_cast<int64_t>(c->imm));
  }

  Sum sum_of(Value v) const {
    Sum s{v};
    for (;;) {
      const Inst* i = def(s.of, Opcode::kSub);
      int64_t sign = i != nullptr ? -1 : 1;
      if (i == nullptr) i = def(s.of, Opcode::kAdd);
      std::optional<int64_t> c = i == nullptr ? std::nullopt : constant(f_.args(*i)[1]);
      bool small = c && *c >= -INT16_MAX && *c <= INT16_MAX && s.more > -INT16_MAX;
      if (!small) return s;
      s.more += sign * *c;
      s.of = f_.args(*i)[0];
    }
  }

  // Returns whether it is observable if the instruction runs before or after a count.
  bool shows(const Inst& i) const {
    uint8_t effects = info(i.op).effects;
    if (info(i.op).shape == Shape::kLoad) return (i.flags & kMemTraps) != 0 || is_fuel(i);
    return (effects & (kReads | kWrites | kCanTrap | kEndsBlock | kPinned)) != 0 ||
           i.op == Opcode::kProbe || i.op == Opcode::kFrameState;
  }

  bool is_fuel_store(const Inst& i) const { return i.op == Opcode::kStore && is_fuel(i); }
  bool asks(const Inst& i, Value left) const {
    if (i.op != Opcode::kTrapIf || static_cast<TrapCode>(i.aux) != TrapCode::kOutOfFuel) {
      return false;
    }
    const Inst* less = def(f_.args(i)[0], Opcode::kLtS);
    return less != nullptr && f_.args(*less)[0] == left && constant(f_.args(*less)[1]) == 0;
  }

  void merge(Block b) {
    std::optional<Count> before, now;
    std::vector<InstId> drop, changed;
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      if (is_fuel_store(i) && !now) {
        now = Count{id, InstId::none(), f_.args(i)[0]};
      } else if (now && asks(i, now->left)) {
        now->trap = id;
        if (before && follows(*before, *now)) {
          drop.insert(drop.end(), {before->store, before->trap});
          changed.push_back(f_.value(now->left).inst);
        }
        before = std::exchange(now, std::nullopt);
      } else if (shows(i)) {
        before.reset();
        now.reset();
      }
    }
    if (drop.empty()) return;
    std::erase_if(f_.block(b).insts,
                  [&](InstId id) { return std::ranges::find(drop, id) != drop.end(); });
    for (InstId id : changed) shorten(b, id);
  }

  bool follows(const Count& before, const Count& now) const {
    Sum first = sum_of(before.left), second = sum_of(now.left);
    return first.of == second.of && second.more < first.more && first.more < 0;
  }

  // Replaces a chain of sums by a single sum with the first operand.
  void shorten(Block b, InstId id) {
    Sum s = sum_of(f_.inst(id).result);
    auto& insts = f_.block(b).insts;
    auto at = std::ranges::find(insts, id);
    if (at == insts.end()) return;
    Inst c{.op = Opcode::kConst, .type = Type::kI64, .imm = static_cast<uint64_t>(s.more)};
    c.loc = f_.inst(id).loc;
    InstId made = f_.add_inst(c, Type::kI64);
    f_.value(f_.inst(made).result).block = b;
    insts.insert(at, made);
    f_.inst(id).op = Opcode::kAdd;
    f_.inst(id).args = f_.make_list(std::vector<Value>{s.of, f_.inst(made).result});
  }

  Function& f_;
};

}  // namespace

void merge_fuel(Function& f) { FuelMerger(f).run(); }

}  // namespace uptier::jit
