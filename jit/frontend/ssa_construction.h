// SsaConstruction: the values of Variables in each block, while a function is described.
//
// Uses Braun's construction (Braun et al., "Simple and Efficient Construction of Static Single
// Assignment Form", 2013), with a shortcut that saves most of the parameters that would turn out to
// be redundant. If paths join in `b`, and all of them go through `d`, a Variable that is not
// defined between them has the same value at `b` as at `d`. The blocks between were begun after
// `d`, so it is sufficient that the Variable was last defined in a block begun no later than `d`.
//
// A dominator that might still change is not used: nothing is concluded through an unsealed block,
// nor if blocks are begun before anything leads to them. In these cases a parameter is made, and
// BuilderAccess::finish() removes it if it is redundant.
//
// Predecessors, and parameters that wait for the seal of their block, are chains through flat
// arrays. Edge arguments are kept apart from the function's pool, because parameters appear in any
// order while blocks are sealed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "jit/frontend/definitions.h"
#include "jit/frontend/edge_args.h"
#include "jit/ir/function.h"
#include "uptier/builder.h"
#include "uptier/result.h"

namespace uptier {

struct SsaConstruction {
  static constexpr uint32_t kEnd = UINT32_MAX;
  // The average number of steps that the search for dominators may take.
  static constexpr uint64_t kStepsPerBlock = 64;
  // The steps that the search for values of Variables may take: blocks walked, parameters made,
  // edges filled. For the numbers of real programs see docs/notes/0045.
  static constexpr uint64_t kFreeSteps = 1 << 18;
  static constexpr uint64_t kStepsPerInst = 16;

  struct BlockState {
    bool sealed = false;
    uint32_t begun_at = 0;  // by `clock`; 0: not begun
    uint32_t pred_count = 0;
    uint32_t known_preds = 0;  // when it was begun
    Block dominator;           // the nearest known block that all paths go through; none: not known
    uint32_t depth = 0;        // below the last known dominator
    uint32_t first_pred = kEnd, last_pred = kEnd;        // edges
    uint32_t first_waiting = kEnd, last_waiting = kEnd;  // indices in `waiting`
  };
  struct Incoming {
    Block from;
    uint32_t before = kEnd, next = kEnd;  // among the edges into the same block
  };
  struct Waiting {
    Variable variable;
    Value param;
    uint32_t next = kEnd;
  };

  jit::Function f;
  std::vector<BlockState> blocks;
  std::vector<Type> variables;
  std::vector<uint32_t> defined_at;  // by Variable: `clock` at its last definition
  Definitions defs;
  std::vector<Incoming> incoming;  // by edge
  std::vector<Waiting> waiting;    // parameters of blocks that are not sealed
  EdgeArgs edge_args;
  // Parameters whose edges are not filled in yet; drained before any public call returns.
  std::vector<std::pair<Variable, Value>> pending;
  std::vector<Block> walked;  // scratch space of lookup
  // Constants that go in front of their blocks, the latest first, when the description is complete.
  std::vector<std::pair<Block, jit::InstId>> zeros;
  Block current;
  uint32_t clock = 0;       // blocks begun so far
  uint64_t steps_left = 0;  // of searches for dominators
  uint64_t steps = 0;       // of searches for values
  bool too_much = false;    // the search took more: describe the body in the plain form
  bool in_order = true;     // every block had a predecessor when it was begun

  mutable Status misuse;  // the first misuse; nothing is added after it

  // Counts the steps of a search. Returns false if the total exceeds the limit for the body.
  bool spend(uint64_t n) {
    steps += n;
    return steps <= kFreeSteps + kStepsPerInst * f.insts.size() || give_up();
  }
  bool give_up();

  Block common_dominator(Block a, Block b);
  void begin(Block b);
  void close(Block b);
  Block same_above(Variable x, const BlockState& b) const;
  Value lookup(Variable x, Block b);
  Value lookup_slow(Variable x, Block b);
  Value make_at_start(Variable x, Block b);
  Value zero_at_start(Block b, Type t);
  void fill_pending();
  void fill_edges(Variable x, Value param);
  // Puts the constants of `zeros` into their blocks.
  void place_zeros();
};

}  // namespace uptier
