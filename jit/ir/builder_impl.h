// What a FunctionBuilder holds while it builds. Shared by builder.cc (filling) and finish.cc.
//
// `defs` maps (variable, block) to the value at the end of the block so far. Edge arguments are
// kept apart from the pool, one vector an edge, because parameters appear in any order while blocks
// are sealed; finish() moves them in.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/ir/build.h"

namespace uptier {

struct FunctionBuilder::Impl {
  struct BlockState {
    bool sealed = false;
    bool begun = false;
    std::vector<std::pair<Block, uint32_t>> preds;       // block, edge
    std::vector<std::pair<Variable, Value>> incomplete;  // parameters that wait for the seal
  };

  jit::Function f;
  std::optional<jit::Function> adopted;
  std::vector<Value> params;
  std::vector<BlockState> blocks;
  std::vector<Type> variables;
  std::unordered_map<uint64_t, Value> defs;  // key(variable, block)
  std::vector<std::vector<Value>> edge_args;
  // Parameters whose edges are not filled in yet; drained before any public call returns.
  std::vector<std::pair<Variable, Value>> pending;
  Block current;
  uint32_t location = 0;
  uint32_t host_probes = 0;

  static uint64_t key(Variable x, Block b) { return uint64_t{x.index()} << 32 | b.index(); }

  Block here() const;
  Type type_of(Value v) const;
  Value append(jit::Inst i);
  Value lookup(Variable x, Block b);
  Value lookup_at_join(Variable x, Block b);
  void fill_pending();
  void fill_edges(Variable x, Value param);
  Value zero_at_start(Block b, Type t);
  void add_edge(Block from, Block to);
  void end_block(jit::Inst i, std::initializer_list<Block> to);
};

}  // namespace uptier
