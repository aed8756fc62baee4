#include "jit/opt/osr_entry.h"

#include <algorithm>

#include "jit/opt/passes.h"
#include "jit/opt/peel_outer_loops.h"
#include "jit/opt/repair_ssa.h"

namespace uptier::jit {
namespace {

Block find_header(const Function& f, LoopId loop) {
  for (Block b : f.layout) {
    const Inst& first = f.inst(f.block(b).insts.front());
    if (first.op == Opcode::kLoopHeader && first.aux == loop.index()) return b;
  }
  return Block::none();
}

Error no_such_loop(const Function& f, LoopId loop) {
  return {ErrorCode::kInvalidArgument, f.name + " has no loop " + std::to_string(loop.index())};
}

bool is_constant(const Function& f, Value v) {
  InstId def = f.value(v).inst;
  return def.valid() && f.inst(def).op == Opcode::kConst;
}

// An invariant load is repeated if its base is live, so that the passes recognize it. Returns the
// base, or none if the value has to be taken from its slot.
Value invariant_base(const Function& f, Value v, std::span<const Value> lives) {
  InstId def = f.value(v).inst;
  if (!def.valid()) return Value::none();
  const Inst& i = f.inst(def);
  bool invariant = info(i.op).shape == Shape::kLoad && (i.flags & kMemInvariant) != 0;
  if (!invariant || i.args.size != 1) return Value::none();
  Value base = f.args(i)[0];
  bool parameter = !f.value(base).inst.valid() && f.value(base).block == f.entry();
  return parameter && std::ranges::find(lives, base) != lives.end() ? base : Value::none();
}

// Ends the new entry block and puts it first.
void enter(Function& f, Block entry, Block first, std::span<const Value> args,
           std::span<const Redefinition> again) {
  Inst jump{.op = Opcode::kJump};
  jump.edges_at = static_cast<uint32_t>(f.edges.size());
  jump.edge_count = 1;
  f.edges.push_back({first, f.make_list(args)});
  f.append(entry, jump, Type::kNone);
  f.layout.insert(f.layout.begin(), entry);
  remove_unreachable(f);
  repair_ssa(f, again);
}

// Recreates the values that are live at a loop's header from the host's arguments and slots.
class HostFrame {
 public:
  HostFrame(const Function& original, Function& f, Block entry, const Inst& header)
      : original_(original), f_(f), entry_(entry), slots_(original.args(header)) {
    for (Type t : original.signature().params) params_.push_back(f.add_block_param(entry, t));
    frame_ = f.add_block_param(entry, Type::kRef);
  }

  // Returns none for a value that the host's frame does not hold.
  Value take(Value v) {
    if (is_constant(original_, v)) {
      return f_.inst(f_.append(entry_, original_.inst(original_.value(v).inst), f_.type_of(v)))
          .result;
    }
    const ValueData& data = original_.value(v);
    bool argument = !data.inst.valid() && data.block == original_.entry();
    if (argument) return params_[data.index];
    for (uint32_t k = 0; k < slots_.size(); ++k) {
      if (slots_[k] == v) return load(k, f_.type_of(v));
    }
    return Value::none();
  }

 private:
  Value load(uint32_t slot, Type t) {
    Inst i{.op = Opcode::kLoad, .type = t, .imm = uint64_t{slot} * 8};
    i.args = f_.make_list({{frame_}});
    return f_.inst(f_.append(entry_, i, t)).result;
  }

  const Function& original_;
  Function& f_;
  Block entry_;
  std::span<const Value> slots_;
  std::vector<Value> params_;
  Value frame_;
};

}  // namespace

Result<OsrFunction> enter_at_loop(const Function& original, LoopId loop, const Liveness& live,
                                  const FrameLayout& frame, std::span<const uint64_t> counts) {
  Block header = find_header(original, loop);
  if (!header.valid()) return no_such_loop(original, loop);
  OsrFunction r{original, {}, {}};
  Function& f = r.function;
  Block entry = f.add_block();
  Signature signature{{}, f.signature().result};
  auto take = [&](Value v) {
    Type t = f.type_of(v);
    signature.params.push_back(t);
    r.slots.push_back(frame.slot[v.index()]);
    r.values.push_back(v);
    return f.add_block_param(entry, t);
  };
  std::vector<Value> args;
  for (Value v : original.params(header)) args.push_back(take(v));
  std::vector<Redefinition> again;
  Block first = peel_outer_loops(f, find_loop_forest(original), loop, counts, again);
  std::span<const Value> lives = live.live_in[header.index()];
  auto make_again = [&](Value v, ValueList operands) {
    Inst i = original.inst(original.value(v).inst);
    i.args = operands;
    again.push_back({v, entry, f.inst(f.append(entry, i, f.type_of(v))).result});
  };
  for (Value v : lives) {
    if (is_constant(original, v)) make_again(v, {});
    if (!is_constant(original, v) && !invariant_base(original, v, lives).valid()) {
      again.push_back({v, entry, take(v)});
    }
  }
  for (Value v : lives) {
    Value base = is_constant(original, v) ? Value::none() : invariant_base(original, v, lives);
    if (!base.valid()) continue;
    auto taken = std::ranges::find(again, base, &Redefinition::value);
    make_again(v, f.make_list({{taken->again}}));
  }
  f.signature_id = f.intern(signature);
  enter(f, entry, first, args, again);
  return r;
}

Result<Function> enter_from_host(const Function& original, LoopId loop, const Liveness& live,
                                 std::span<const uint64_t> counts) {
  Block header = find_header(original, loop);
  if (!header.valid()) return no_such_loop(original, loop);
  Function f = original;
  Block entry = f.add_block();
  const Inst& state = original.inst(original.block(header).insts.front());
  HostFrame frame(original, f, entry, state);
  std::vector<Value> args;
  std::vector<Redefinition> again;
  for (Value v : original.params(header)) args.push_back(frame.take(v));
  for (Value v : live.live_in[header.index()]) again.push_back({v, entry, frame.take(v)});
  auto missing = [](const Redefinition& d) { return !d.again.valid(); };
  if (std::ranges::any_of(args, [](Value v) { return !v.valid(); }) ||
      std::ranges::any_of(again, missing)) {
    return Error{ErrorCode::kUnsupported, original.name + ": loop " + std::to_string(loop.index()) +
                                              " uses a value that its frame state does not name"};
  }
  Signature signature = original.signature();
  signature.params.push_back(Type::kRef);
  f.signature_id = f.intern(signature);
  Block first = peel_outer_loops(f, find_loop_forest(original), loop, counts, again);
  enter(f, entry, first, args, again);
  return f;
}

}  // namespace uptier::jit
