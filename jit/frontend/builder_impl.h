// What a FunctionBuilder holds while it builds. Shared by builder.cc (filling), lookup.cc
// (Variables) and finish.cc.
//
// Predecessors, and parameters that wait for the seal of their block, are chains through flat
// arrays. Edge arguments are kept apart from the function's pool, because parameters appear in any
// order while blocks are sealed; finish() moves them in. The instructions of the current block are
// gathered here and given to it when it ends, so that a block allocates once.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/frontend/build.h"
#include "jit/frontend/definitions.h"

namespace uptier {

// What an edge passes, by the index of the parameter; values in EdgeArgs::pool.
class EdgeArgs {
 public:
  void reserve(size_t edges) { lists_.reserve(edges); }
  void add_edge() { lists_.emplace_back(); }
  // Returns what the edge passes, none when nothing was set.
  Value get(uint32_t edge, uint32_t index) const {
    const jit::ValueList& l = lists_[edge];
    return index < l.size ? pool_[l.at + index] : Value::none();
  }
  void set(uint32_t edge, uint32_t index, Value v);
  // Takes the room that another one's tables have.
  void take_room(EdgeArgs& other);

 private:
  std::vector<jit::ValueList> lists_;  // by edge
  std::vector<Value> pool_;
};

struct FunctionBuilder::Impl {
  static constexpr uint32_t kEnd = UINT32_MAX;
  // What the search for dominators may spend on average.
  static constexpr uint64_t kStepsPerBlock = 64;
  // What the search for values of Variables may spend: blocks walked, parameters made, edges filled.
  // What real programs spend: docs/notes/0045.
  static constexpr uint64_t kFreeSteps = 1 << 18;
  static constexpr uint64_t kStepsPerInst = 16;
  static constexpr uint32_t kNoPlace = UINT32_MAX;

  struct BlockState {
    bool sealed = false;
    uint32_t begun_at = 0;  // by `clock`; 0: not begun
    uint32_t pred_count = 0;
    uint32_t known_preds = 0;  // when it was begun
    Block dominator;           // the next block that all paths go through; none: not known
    uint32_t depth = 0;        // below the last known dominator
    uint32_t first_pred = kEnd, last_pred = kEnd;        // edges
    uint32_t first_waiting = kEnd, last_waiting = kEnd;  // places in `waiting`
  };
  struct Incoming {
    Block from;
    uint32_t before = kEnd, next = kEnd;  // of the edges into the same block
  };
  struct Waiting {
    Variable variable;
    Value param;
    uint32_t next = kEnd;
  };

  jit::Function f;
  std::optional<jit::Function> adopted;
  std::vector<Value> params;
  std::vector<BlockState> blocks;
  std::vector<Type> variables;
  std::vector<uint32_t> defined_at;  // by Variable: `clock` at its last definition
  Definitions defs;
  std::vector<Incoming> incoming;  // by edge
  std::vector<Waiting> waiting;    // parameters of blocks that are not sealed
  EdgeArgs edge_args;
  // Parameters whose edges are not filled in yet; drained before any public call returns.
  std::vector<std::pair<Variable, Value>> pending;
  std::vector<jit::InstId> body;  // of the current block
  std::vector<Block> walked;      // scratch space of lookup
  // Constants that go in front of their blocks, the latest first, when all is described.
  std::vector<std::pair<Block, jit::InstId>> zeros;
  Block current;
  uint32_t clock = 0;       // blocks begun so far
  uint64_t steps_left = 0;  // of searches for dominators
  uint64_t steps = 0;       // of searches for values
  bool too_much = false;    // they took more than they may: it is to be described plainly
  // Described plainly (plain_form.h): Variables declared in the entry are words of the frame's memory.
  bool plain = false;
  Value memory;
  std::vector<uint32_t> places;  // by Variable: offset, or kNoPlace
  uint32_t memory_bytes = 0;
  uint32_t short_life = 0;  // blocks that a value may live for and stay one
  bool in_order = true;     // something led to each block when it was begun
  uint32_t location = 0;
  std::vector<jit::InstId> host_probes;
  // Instructions that ask what a probe has come to.
  std::vector<std::pair<jit::InstId, jit::InstId>> known_counts;

  mutable Status misuse;  // the first; nothing is added after it

  // Places in the function's tables, as soon as these are too long to be searched.
  std::unordered_map<uint32_t, uint32_t> callee_places;        // by MethodId::number()
  std::unordered_multimap<size_t, uint32_t> signature_places;  // by hash
  uint32_t callee(MethodId method, std::string_view name, SignatureId signature);
  SignatureId intern(const Signature& s);

  void make_room();
  void begin_plain();
  void declare_place();
  void store_variable(Variable x, Value v);
  Value load_variable(Variable x);
  bool in_memory(Variable x) const { return plain && places[x.index()] != kNoPlace; }
  // Counts what a search has taken. Returns false when it was more than the body may take.
  bool spend(uint64_t n) {
    steps += n;
    return steps <= kFreeSteps + kStepsPerInst * f.insts.size() || give_up();
  }
  bool give_up();
  // Takes the room that tables of another one have, which is told nothing any more; and of a
  // function that nobody reads any more.
  void take_room(Impl& other);
  void take_room(jit::Function& other);
  // Remembers a misuse, unless there was one. Returns false.
  bool refuse(std::string_view what) const;
  // Whether there was none, and the condition holds; else it is one.
  bool expect(bool condition, std::string_view what) const {
    return misuse.ok() && (condition || refuse(what));
  }
  bool has(Value v) const { return v.index() < f.values.size() ? misuse.ok() : has_slow(v); }
  bool has(Block b) const { return b.index() < blocks.size() ? misuse.ok() : has_slow(b); }
  bool has(Variable x) const { return x.index() < variables.size() ? misuse.ok() : has_slow(x); }
  bool has_slow(Value v) const;
  bool has_slow(Block b) const;
  bool has_slow(Variable x) const;
  bool is_type(Type t) const;
  bool is_op(Opcode op, std::initializer_list<Shape> shapes) const;
  // Whether an instruction may follow here: there is a block that has not ended.
  bool may_append() const {
    return expect(current.valid(), "the block has ended and no other is current");
  }
  template <typename List>
  bool has_all(const List& ids) const {
    for (auto id : ids) {
      if (!has(id)) return false;
    }
    return misuse.ok();
  }
  // Whether there may be a jump to it.
  bool is_open(Block b) const { return has(b) && (!blocks[b.index()].sealed || refuse_sealed(b)); }
  bool refuse_sealed(Block b) const;

  Block here() const { return current; }
  Type type_of(Value v) const { return v.index() < f.values.size() ? f.type_of(v) : Type::kNone; }
  Value append(const jit::Inst& i);
  void add_edge(Block from, Block to);
  void end_block(jit::Inst i, std::initializer_list<Block> to);
  void leave_block();
  void place_zeros();

  // lookup.cc
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
};

}  // namespace uptier
