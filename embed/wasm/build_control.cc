// Structured control of FunctionTranslator: blocks, branches, joins.
#include <algorithm>
#include <utility>

#include "embed/wasm/build_function.h"

namespace uptier::wasm {

FunctionTranslator::Frame FunctionTranslator::open_frame(Op op, BlockType type) {
  Frame f;
  f.op = op;
  f.type = type;
  f.height = stack_.size() - type.params.size();
  return f;
}

// Returns the block that branches to `f` go to, making it when it is the first.
Block FunctionTranslator::target_of(Frame& f) {
  if (f.target.valid()) return f.target;
  f.target = b_.create_block();
  for (Type t : f.target_types()) f.carry.push_back(b_.declare(t));
  return f.target;
}

// Hands the topmost operands to the target of `f`; they stay on the stack.
void FunctionTranslator::carry_to(Frame& f) {
  target_of(f);
  size_t first = stack_.size() - f.carry.size();
  for (size_t i = 0; i < f.carry.size(); ++i) b_.def(f.carry[i], settle(stack_[first + i]));
}

// Continues at the target of `f`, with the values of the branches on the stack.
void FunctionTranslator::arrive_at(const Frame& f) {
  stack_.resize(f.height);
  for (Variable x : f.carry) push(b_.use(x));
}

void FunctionTranslator::branch(Condition c, Block if_true, Block if_false) {
  if (c.inverted) std::swap(if_true, if_false);
  if (c.inverted && context_.inverted != nullptr) context_.inverted->push_back(at_);
  b_.branch(c.value, if_true, if_false);
}

// Returns where an edge leads whose target has other edges: for coverage, a block between.
Block FunctionTranslator::edge_to(Block target) { return covers() ? b_.create_block() : target; }

// Describes such a block, after the branch.
void FunctionTranslator::describe_edge(Block edge, Block target) {
  if (edge == target) return;
  b_.seal(edge);
  begin(edge);
  b_.jump(target);
}

void FunctionTranslator::on_block(Op op) {
  frames_.push_back(open_frame(op, reader_.block_type(info_.types)));
}

void FunctionTranslator::on_loop(uint32_t at) {
  Frame f = open_frame(Op::kLoop, reader_.block_type(info_.types));
  if (facts_.repeats(at)) {
    carry_to(f);
    b_.jump(f.target);
    b_.switch_to(f.target);
    b_.loop_header(at);
    cover();
    arrive_at(f);
  }
  frames_.push_back(std::move(f));
}

// Without else the false edge goes straight to the end, with the parameters as results.
void FunctionTranslator::on_if(uint32_t at) {
  Condition c = pop_condition();
  Frame f = open_frame(Op::kIf, reader_.block_type(info_.types));
  Block then = b_.create_block();
  if (facts_.has_else(at)) {
    f.otherwise = b_.create_block();
    for (size_t i = f.height; i < stack_.size(); ++i) f.params.push_back(settle(stack_[i]));
    branch(c, then, f.otherwise);
  } else {
    carry_to(f);
    const Block edge = edge_to(f.target);
    branch(c, then, edge);
    describe_edge(edge, f.target);
  }
  b_.seal(then);
  begin(then);
  frames_.push_back(std::move(f));
}

void FunctionTranslator::on_else() {
  Frame& f = frames_.back();
  if (live()) {
    carry_to(f);
    b_.jump(f.target);
  }
  b_.seal(f.otherwise);
  begin(f.otherwise);
  stack_.resize(f.height);
  for (Value v : f.params) push(v);
  f.op = Op::kElse;
}

void FunctionTranslator::on_end() {
  Frame f = std::move(frames_.back());
  frames_.pop_back();
  if (f.op == Op::kLoop) {
    if (f.target.valid()) b_.seal(f.target);
  } else if (f.target.valid()) {
    if (live()) {
      carry_to(f);
      b_.jump(f.target);
    }
    b_.seal(f.target);
    begin(f.target);
    arrive_at(f);
  }
  if (!live()) {
    stack_.resize(f.height);
  } else if (frames_.empty()) {
    on_return();
  }
}

void FunctionTranslator::on_br(uint32_t depth) {
  if (depth + 1 == frames_.size()) return on_return();
  Frame& f = frame_at(depth);
  carry_to(f);
  b_.jump(f.target);
}

void FunctionTranslator::on_br_if(uint32_t depth) {
  Condition c = pop_condition();
  Frame& f = frame_at(depth);
  carry_to(f);
  Block next = b_.create_block();
  const Block edge = edge_to(f.target);
  branch(c, edge, next);
  describe_edge(edge, f.target);
  b_.seal(next);
  begin(next);
}

void FunctionTranslator::on_br_table() {
  Value index = pop();
  std::vector<Block> cases;
  for (uint64_t left = uint64_t{reader_.u32()} + 1; left > 0; --left) {
    uint32_t depth = reader_.u32();
    Frame& f = frame_at(depth);
    if (f.carried_at != at_) carry_to(f);
    f.carried_at = at_;
    cases.push_back(f.target);
  }
  Block otherwise = cases.back();
  cases.pop_back();
  bool is_same = std::all_of(cases.begin(), cases.end(), [&](Block b) { return b == otherwise; });
  if (is_same) return b_.jump(otherwise);
  b_.switch_on(index, cases, otherwise);
}

// Stores all results but the first where the caller looks for them. The operands stay: this may be
// a branch out of blocks whose ends are still to come.
void FunctionTranslator::on_return() {
  size_t count = type_.results.size();
  if (count == 0) return b_.ret();
  size_t first = stack_.size() - count;
  if (count > 1) {
    Value results = load_context(Type::kRef, offsetof(VmContext, header.results));
    for (uint32_t i = 1; i < count; ++i) {
      b_.store(Opcode::kStore, settle(stack_[first + i]), {.base = results, .offset = (i - 1) * 8});
    }
  }
  b_.ret(settle(stack_[first]));
}

}  // namespace uptier::wasm
