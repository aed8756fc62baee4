// indirect_calls.h: turns direct calls into indirect calls whose targets are constant addresses.
#pragma once

#include <functional>
#include <vector>

#include "jit/frontend/interpret.h"
#include "jit/ir/function.h"
#include "tests/support/random.h"

namespace uptier::test {

// Replaces `percent` of the direct calls by indirect calls of a constant address.
inline void make_calls_indirect(jit::Function& f, Random& random, unsigned percent,
                                const std::function<const void*(MethodId)>& address) {
  for (Block b : f.layout) {
    for (size_t n = 0; n < f.block(b).insts.size(); ++n) {
      jit::InstId id = f.block(b).insts[n];
      if (f.inst(id).op != Opcode::kCall || !random.chance(percent)) continue;
      MethodId callee = f.callees[f.inst(id).imm].method;
      auto bits = reinterpret_cast<uint64_t>(address(callee));
      jit::InstId target =
          f.add_inst({.op = Opcode::kConst, .type = Type::kRef, .imm = bits}, Type::kRef);
      Value v = f.inst(target).result;
      f.value(v).block = b;
      auto& insts = f.block(b).insts;
      insts.insert(insts.begin() + static_cast<ptrdiff_t>(n++), target);
      std::vector<Value> args{v};
      for (Value a : f.args(f.inst(id))) args.push_back(a);
      jit::ValueList list = f.make_list(args);
      jit::Inst& call = f.inst(id);
      call.op = Opcode::kCallIndirect;
      call.args = list;
      call.imm = 0;
    }
  }
}

// Replaces the interpreter's method addresses among the constants by those that `address` gives.
inline void place_addresses(jit::Function& f, size_t methods,
                            const std::function<const void*(MethodId)>& address) {
  for (jit::Inst& i : f.insts) {
    if (i.op != Opcode::kConst || i.type != Type::kRef) continue;
    for (uint32_t m = 0; m < methods; ++m) {
      bool is = i.imm == jit::Interpreter::address_of(MethodId(m));
      if (is) i.imm = reinterpret_cast<uint64_t>(address(MethodId(m)));
      if (is) break;
    }
  }
}

}  // namespace uptier::test
