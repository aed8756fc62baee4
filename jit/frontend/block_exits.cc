#include "jit/frontend/block_exits.h"

#include <utility>

#include "jit/analysis/deopt_targets.h"
#include "jit/frontend/deopt_rows.h"

namespace uptier::jit {

BlockExits::BlockExits(Function& f, const DeoptContext& c)
    : f_(f),
      c_(c),
      blocks_(f.block_sites),
      position_(layout_positions(f)),
      in_loop_(blocks_in_loops(f)) {}

Value BlockExits::make(Block b, const Inst& i, Type result, std::vector<InstId>& out) {
  out.push_back(f_.add_inst(i, result));
  Value v = f_.inst(out.back()).result;
  f_.value(v).block = b;
  return v;
}

void BlockExits::add(Block b, GuardReason reason, bool holds, std::vector<InstId>& out) {
  Inst constant{.op = Opcode::kConst, .type = Type::kI32, .imm = holds ? 1u : 0u};
  Value condition = make(b, constant, Type::kI32, out);
  Inst guard{.op = Opcode::kGuard, .aux = static_cast<uint32_t>(reason)};
  guard.args = f_.make_list({{condition}});
  out.push_back(f_.add_inst(guard, Type::kNone));
  leave(b, out.back(), {c_.guards + position(b), in_loop(b), c_.stressed && holds}, {});
}

void BlockExits::add_value(Block b, Value condition, uint32_t n, std::span<const Value> passed,
                           bool in_loop, std::vector<InstId>& out) {
  Inst guard{.op = Opcode::kGuard, .aux = static_cast<uint32_t>(GuardReason::kValue)};
  guard.args = f_.make_list({{condition}});
  out.push_back(f_.add_inst(guard, Type::kNone));
  leave(b, out.back(), {c_.guards + blocks_ + n, in_loop, c_.stressed}, passed);
}

void BlockExits::leave(Block b, InstId guard, const Exit& e, std::span<const Value> passed) {
  std::vector<Value> values = live_at_start(f_, c_.live, b);
  Deopt d;
  d.exit = e.number;
  d.at_block = true;
  d.in_loop = e.in_loop;
  d.stressed = e.stressed;
  DeoptFrame frame;
  frame.point = position(b);
  frame.slots = slots_of(values, c_.frame);
  d.frames.push_back(std::move(frame));
  for (Value& v : values) {
    const ValueData& known = f_.value(v);
    bool param = !known.inst.valid() && known.block == b;
    if (param && !passed.empty()) v = passed[known.index];
  }
  attach(f_, guard, std::move(d), values);
}

}  // namespace uptier::jit
