#include "jit/frontend/attach_deopts.h"

#include <algorithm>
#include <map>

#include "jit/analysis/loop_forest.h"
#include "jit/frontend/block_exits.h"

namespace uptier::jit {
namespace {

std::vector<int32_t> slots_of(const std::vector<Value>& values, const FrameLayout& frame) {
  std::vector<int32_t> slots;
  for (Value v : values) slots.push_back(frame.slot[v.index()]);
  return slots;
}

std::vector<bool> blocks_in_loops(const Function& f) {
  std::vector<bool> in(f.blocks.size());
  LoopForest forest = find_loop_forest(f);
  for (Block b : f.layout) in[b.index()] = forest.innermost[b.index()].valid();
  return in;
}

// Gives a guard its operands and its row.
void attach(Function& f, InstId guard, Deopt d, const std::vector<Value>& values) {
  std::vector<Value> args{f.args(f.inst(guard))[0]};
  args.insert(args.end(), values.begin(), values.end());
  f.deopts.push_back(std::move(d));
  f.inst(guard).imm = f.deopts.size();
  f.inst(guard).args = f.make_list(args);
}

class GuardAttacher {
 public:
  GuardAttacher(Function& f, const DeoptContext& c, bool to_host)
      : f_(f),
        c_(c),
        to_host_(to_host),
        states_(state_points(f, c.live)),
        in_loop_(blocks_in_loops(f)) {}

  void run() {
    size_t next = 0;  // of states_
    for (Block b : f_.layout) {
      const StatePoint* state = nullptr;
      for (size_t n = 0; n < f_.block(b).insts.size(); ++n) {
        InstId id = f_.block(b).insts[n];
        if (next < states_.size() && states_[next].state == id) state = &states_[next++];
        if (f_.inst(id).op == Opcode::kGuard) leave(id, b, *state);
      }
    }
  }

 private:
  void leave(InstId guard, Block b, const StatePoint& p) {
    Deopt d;
    d.exit = exit_++;
    d.in_loop = in_loop_[b.index()];
    d.stressed = c_.stressed;
    d.to_host = to_host_;
    DeoptFrame frame;
    frame.point = p.point;
    frame.pc = static_cast<uint32_t>(f_.inst(p.state).imm);
    std::vector<Value> values;
    if (to_host_) {
      auto named = f_.args(f_.inst(p.state));
      values.assign(named.begin(), named.end());
      frame.host_slots = static_cast<uint32_t>(values.size());
    } else {
      values = p.live;
      frame.slots = slots_of(values, c_.frame);
    }
    d.frames.push_back(std::move(frame));
    attach(f_, guard, std::move(d), values);
  }

  Function& f_;
  const DeoptContext& c_;
  bool to_host_;
  std::vector<StatePoint> states_;
  std::vector<bool> in_loop_;
  uint32_t exit_ = 0;
};

bool is_header(const Function& f, Block b) {
  return f.inst(f.block(b).insts.front()).op == Opcode::kLoopHeader;
}

// Puts `exit` in front of a block's instructions, behind a loop_header.
void put_first(Function& f, Block b, const std::vector<InstId>& exit) {
  auto& insts = f.block(b).insts;
  insts.insert(insts.begin() + (is_header(f, b) ? 1 : 0), exit.begin(), exit.end());
}

}  // namespace

void attach_deopts(Function& f, const DeoptContext& c, bool to_host) {
  if (c.guards != 0) GuardAttacher(f, c, to_host).run();
}

// ---- Calls ------------------------------------------------------------------------------------

namespace {

InstId make_call_state(Function& f, const CallPoint& p, const FrameLayout& layout) {
  DeoptFrame frame;
  frame.point = p.point;
  frame.slots = slots_of(p.live, layout);
  f.deopts.emplace_back().frames.push_back(std::move(frame));
  Inst state{.op = Opcode::kFrameState, .flags = kCallState, .site = f.inst(p.call).site};
  state.aux = static_cast<uint32_t>(f.deopts.size());
  state.args = f.make_list(p.live);
  return f.add_inst(state, Type::kNone);
}

}  // namespace

void attach_call_states(Function& f, const Function& built, const DeoptContext& c) {
  std::vector<CallPoint> points = call_points(built, c.live, state_points(built, c.live).size());
  std::map<uint32_t, InstId> states;  // by InstId::index() of the call
  for (const CallPoint& p : points) states[p.call.index()] = make_call_state(f, p, c.frame);
  for (Block b : f.layout) {
    std::vector<InstId> insts;
    for (InstId id : f.block(b).insts) {
      if (returns_to_point(f.inst(id).op)) insts.push_back(states.at(id.index()));
      insts.push_back(id);
    }
    f.block(b).insts = std::move(insts);
  }
}

void drop_call_states(Function& f) {
  for (Block b : f.layout) {
    std::erase_if(f.block(b).insts, [&](InstId i) { return is_call_state(f.inst(i)); });
  }
}

// ---- Blocks -----------------------------------------------------------------------------------

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

void add_block_guards(Function& f, const DeoptContext& c) {
  BlockExits exits(f, c);
  for (Block b : f.layout) {
    if (b == f.entry()) continue;
    std::vector<InstId> exit;
    exits.add(b, GuardReason::kUser, true, exit);
    put_first(f, b, exit);
  }
}

void add_loop_polls(Function& f, const DeoptContext& c, std::span<const LoopId> polling) {
  BlockExits exits(f, c);
  for (Block b : f.layout) {
    LoopId loop = is_header(f, b) ? LoopId(f.inst(f.block(b).insts.front()).aux) : LoopId::none();
    if (std::ranges::find(polling, loop) == polling.end()) continue;
    std::vector<InstId> poll;
    exits.add(b, GuardReason::kUser, true, poll);
    Deopt& d = f.deopts.back();
    d.stressed = false;
    d.polls = loop;
    put_first(f, b, poll);
  }
}

}  // namespace uptier::jit
