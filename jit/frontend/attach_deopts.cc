#include "jit/frontend/attach_deopts.h"

#include <algorithm>
#include <map>

#include "jit/frontend/block_exits.h"
#include "jit/frontend/deopt_rows.h"

namespace uptier::jit {
namespace {

class GuardAttacher {
 public:
  GuardAttacher(Function& f, const DeoptContext& c, bool to_host)
      : f_(f),
        c_(c),
        to_host_(to_host),
        states_(state_points(f, c.live)),
        in_loop_(blocks_in_loops(f)) {}

  void run() {
    size_t next = 0;  // index in states_
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

// Puts `exit` in front of a block's instructions, after a loop_header.
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
