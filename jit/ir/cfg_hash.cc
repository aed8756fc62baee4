#include "jit/ir/cfg_hash.h"

#include <array>

namespace uptier::jit {
namespace {

struct Fnv {
  uint64_t state = 0xcbf29ce484222325ull ^ 1;  // offset basis, with the recipe's version
  void add(uint32_t v) {
    for (int i = 0; i < 4; ++i) state = (state ^ ((v >> (8 * i)) & 0xff)) * 0x100000001b3ull;
  }
};

// By opcode: 1 for calls. Every instruction is asked.
constexpr auto kCalls = [] {
  std::array<uint8_t, kOpcodeCount> calls = {};
  for (size_t op = 0; op < kOpcodeCount; ++op) {
    Shape s = kOpcodeTable[op].shape;
    calls[op] = s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
  }
  return calls;
}();

}  // namespace

uint64_t cfg_hash(const Function& f) {
  std::vector<uint32_t> position = layout_positions(f);
  Fnv h;
  uint32_t calls = 0;
  for (Block b : f.layout) {
    auto edges = f.successors(b);
    h.add(static_cast<uint32_t>(edges.size()));
    for (const Edge& e : edges) h.add(position[e.to.index()]);
    for (InstId i : f.block(b).insts) calls += kCalls[static_cast<size_t>(f.inst(i).op)];
  }
  h.add(calls);
  return h.state == 0 ? 1 : h.state;
}

}  // namespace uptier::jit
