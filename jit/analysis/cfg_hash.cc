#include "jit/analysis/cfg_hash.h"

#include "jit/ir/is_call.h"

namespace uptier::jit {
namespace {

struct CfgFnv {
  static constexpr uint64_t kPrime = 0x100000001b3ull;
  uint64_t state = 0xcbf29ce484222325ull ^ 1;  // offset basis, with the recipe's version
  void add(uint32_t v) {
    if (v < 256) {  // the three zero bytes only multiply
      state = (state ^ v) * (kPrime * kPrime * kPrime * kPrime);
      return;
    }
    for (int i = 0; i < 4; ++i) state = (state ^ ((v >> (8 * i)) & 0xff)) * kPrime;
  }
};

}  // namespace

uint64_t cfg_hash(const Function& f) {
  uint32_t calls = 0;
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) calls += is_call(f.inst(i).op);
  }
  return cfg_hash(f, calls);
}

uint64_t cfg_hash(const Function& f, uint32_t calls) {
  std::vector<uint32_t> position = layout_positions(f);
  CfgFnv h;
  for (Block b : f.layout) {
    auto edges = f.successors(b);
    h.add(static_cast<uint32_t>(edges.size()));
    for (const Edge& e : edges) h.add(position[e.to.index()]);
  }
  h.add(calls);
  return h.state == 0 ? 1 : h.state;
}

}  // namespace uptier::jit
