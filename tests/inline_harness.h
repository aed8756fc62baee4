// Modules whose functions may be inlined into each other, for tests.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "jit/inlinee.h"
#include "tests/opt_harness.h"

namespace uptier::test {

// Knows every function of a module, with the profile that `profile(function)` makes up.
class ModuleInlinees final : public jit::InlineeSource {
 public:
  using Profiles = std::function<jit::BodyProfile(const jit::Function&)>;

  ModuleInlinees(const jit::Module& module, Profiles profiles, bool to_host = false)
      : module_(module), profiles_(std::move(profiles)), to_host_(to_host) {}

  const jit::Inlinee* find(MethodId m) override {
    auto& known = known_[m.index()];
    if (!known) {
      const jit::Function& f = module_.functions[m.index()];
      known = std::make_unique<jit::Inlinee>(jit::Inlinee{f, profiles_(f), to_host_});
    }
    return known.get();
  }

 private:
  const jit::Module& module_;
  Profiles profiles_;
  bool to_host_;
  std::map<uint32_t, std::unique_ptr<jit::Inlinee>> known_;
};

// Every block as often as every other: all calls are hot.
inline jit::BodyProfile even_profile(const jit::Function& f) {
  return {std::vector<uint64_t>(f.block_sites, 1000), {}};
}

// Makes direct calls indirect ones of constant addresses, `percent` of them.
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

}  // namespace uptier::test
