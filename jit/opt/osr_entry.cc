#include "jit/opt/osr_entry.h"

#include "jit/opt/passes.h"
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

}  // namespace

Result<OsrFunction> enter_at_loop(const Function& original, LoopId loop, const Liveness& live,
                                  const FrameLayout& frame) {
  Block header = find_header(original, loop);
  if (!header.valid()) {
    return Error{ErrorCode::kInvalidArgument,
                 original.name + " has no loop " + std::to_string(loop.index())};
  }
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
  for (uint32_t k = 0; k < original.params(header).size(); ++k) {
    args.push_back(take(original.params(header)[k]));
  }
  std::vector<SecondDefinition> again;
  for (Value v : live.live_in[header.index()]) {
    InstId def = original.value(v).inst;
    bool constant = def.valid() && original.inst(def).op == Opcode::kConst;
    if (!constant) {
      again.push_back({v, take(v)});
      continue;
    }
    InstId copy = f.append(entry, original.inst(def), f.type_of(v));
    again.push_back({v, f.inst(copy).result});
  }
  Inst jump{.op = Opcode::kJump};
  jump.edges_at = static_cast<uint32_t>(f.edges.size());
  jump.edge_count = 1;
  f.edges.push_back({header, f.make_list(args)});
  f.append(entry, jump, Type::kNone);
  f.signature_id = f.intern(signature);
  f.layout.insert(f.layout.begin(), entry);
  remove_unreachable(f);
  repair_ssa(f, again);
  return r;
}

}  // namespace uptier::jit
