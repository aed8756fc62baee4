// A number that is loaded or stored as bits of another type is moved directly from or to a register
// of its own type:
//
//   v = load.i64 p                       x = load.f64 p
//   guard (lt_u v, tag)             ->   v = bitcast.i64 x
//   ... bitcast.f64 v ...                guard (lt_u v, tag)
//                                        ... x ...
//
//   store.i64 (bitcast.i64 x), p    ->   store.f64 x, p
//
// A move between general and float registers takes about as long as a float addition. With
// NaN-boxed words, each number that goes through memory would wait for two such moves. The check of
// the tag runs in parallel, and its branch is predicted. A load is changed if its block also
// computes with the number.
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

class Retyper {
 public:
  explicit Retyper(Function& f) : f_(f), r_(f), number_(f.values.size()) {}

  // Returns whether anything was changed.
  bool run() {
    if (!is_worth_it()) return false;
    r_.run(compute_dominators(f_).order, [&](InstId i) { return visit(i); });
    return true;
  }

 private:
  // Finds the loads to be retyped.
  bool is_worth_it() {
    bool any = false;
    for (Block b : f_.layout) {
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        any |= i.op == Opcode::kStore && is_moved(f_.args(i)[0]);
        if (i.op != Opcode::kBitcast || !is_float(i.type)) continue;
        Value from = f_.args(i)[0];
        if (f_.value(from).block != b || r_.def(from, Opcode::kLoad) == nullptr) continue;
        if (is_float(f_.type_of(from))) continue;
        number_[from.index()] = i.type;
        any = true;
      }
    }
    return any;
  }

  // Returns whether the value is a float moved to an integer register.
  bool is_moved(Value v) const {
    const Inst* i = r_.def(v, Opcode::kBitcast);
    return i != nullptr && !is_float(i->type) && is_float(f_.type_of(f_.args(*i)[0]));
  }

  // Returns whether to keep the instruction: always.
  bool visit(InstId id) {
    const Inst& i = f_.inst(id);
    if (i.op == Opcode::kStore && is_moved(f_.args(i)[0])) store(id);
    if (i.op == Opcode::kLoad && i.result.index() < number_.size() &&
        number_[i.result.index()] != Type::kNone) {
      load(id);
    }
    return true;
  }

  void store(InstId id) {
    Value x = f_.args(*r_.def(f_.args(f_.inst(id))[0], Opcode::kBitcast))[0];
    f_.args(f_.inst(id))[0] = x;
    f_.inst(id).type = f_.type_of(x);
  }

  // Emits a retyped load, and turns the instruction into the move back.
  void load(InstId id) {
    Inst loaded = f_.inst(id);
    Value bits = loaded.result;
    loaded.type = number_[bits.index()];
    loaded.result = Value::none();
    std::vector<Value> place(f_.args(loaded).begin(), f_.args(loaded).end());
    Value number = place.size() == 1 ? r_.emit(loaded, {place[0]}, loaded.type)
                                     : r_.emit(loaded, {place[0], place[1]}, loaded.type);
    Inst& i = f_.inst(id);
    i = {.op = Opcode::kBitcast,
         .type = f_.type_of(bits),
         .loc = i.loc,
         .body = i.body,
         .result = bits,
         .args = f_.make_list({{number}})};
  }

  Function& f_;
  Rewriter r_;
  std::vector<Type> number_;  // by Value::index(): the new type of a load; kNone: unchanged
};

}  // namespace

void retype_accesses(Function& f) {
  if (Retyper(f).run()) simplify_arithmetic(f);
}

}  // namespace uptier::jit
