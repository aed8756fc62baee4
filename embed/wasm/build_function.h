// build_function.h: a WebAssembly function body, described to the FunctionBuilder.
//
//   signature: (ref context, parameters...) -> first result; further results go through
//              ContextHeader::results of the callee's context
//   locals:    one Variable each; local.get yields the value of the moment
//   operands:  values on a compile-time stack; where paths join, a block's results (a loop's
//              parameters) travel in Variables of the block
//   dead code: is not described at all, so there is nothing to clean up after
//   locations: offsets of instructions in the module's bytes
//
//   coverage:  if it is wanted, a block that has not run yet sets a byte when it begins, and each edge
//              of a branch that other edges join has a block of its own
//
// Blocks are made for branch targets that are used, and loop headers only for loops that repeat.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "embed/wasm/code_reader.h"
#include "embed/wasm/log_places.h"
#include "embed/wasm/module.h"
#include "embed/wasm/module_info.h"
#include "embed/wasm/vmctx.h"
#include "uptier/builder.h"
#include "uptier/result.h"

namespace uptier::wasm {

// The methods of the module's own functions.
class FunctionMethods {
 public:
  virtual ~FunctionMethods() = default;
  // Errors: there is no room for it.
  virtual Result<MethodId> method_of(uint32_t function) = 0;
};

// The context of a body that is built; borrows everything.
struct BuildContext {
  const ModuleInfo& info;
  const VmLayout& layout;
  Bounds bounds;
  FunctionMethods& methods;
  std::span<const uint32_t> type_ids;  // by ModuleInfo::types
  // Where not null, receives the locations of br_if and if whose IR branch tests the opposite, so
  // that its first edge is the one that WebAssembly takes for 0.
  std::vector<uint32_t>* inverted = nullptr;
  std::span<const LogPlace> logs = {};  // of the function that is built
  // Where not empty: a byte for each byte of the module, not 0 for those whose block has run. Block k of
  // a function, from 0 in the order of code, has the byte at body_begin + k. The blocks are then the same in
  // each description, but not their stores. The bytes must outlive all code.
  std::span<uint8_t> covered = {};
};

// Returns the signature of compiled functions of a type.
Signature compiled_signature(const FuncType& type);

// Describes an own function of the module, whose body was validated. Pure, but for `covered`: the same
// description each time. No recursion, however deep the blocks nest. Errors: kCorruptInput where the bytes are not
// those that were validated, as far as that shows; the description is of no use then. And those of
// FunctionMethods.
Status build_function(const BuildContext& context, uint32_t function, FunctionBuilder& b);

// The work of build_function; its parts lie in build_function.cc (blocks, straight-line code),
// build_control.cc, build_memory.cc and build_call.cc.
class FunctionTranslator {
 public:
  FunctionTranslator(const BuildContext& context, uint32_t function, FunctionBuilder& b);
  Status run();

 private:
  // An operand. An i32.eqz is kept back until its value is wanted: a branch on it only swaps its
  // targets.
  struct Operand {
    Value value;
    bool is_eqz = false;       // the operand is eqz(value)
    bool is_constant = false;  // an i32.const
  };

  // A condition for branches: taken when `value` is not 0, or (inverted) when it is.
  struct Condition {
    Value value;
    bool inverted = false;
  };

  // An open block. The first one is the function itself.
  struct Frame {
    Op op = Op::kBlock;
    BlockType type;
    size_t height = 0;            // operands below the block's parameters
    Block target;                 // where branches to the block go; none until there is one
    std::vector<Variable> carry;  // values for `target`
    Block otherwise;              // of an if with else
    std::vector<Value> params;    // of an if with else
    uint32_t carried_at = 0;      // the last br_table that passed its values to `target`

    std::span<const Type> target_types() const {
      return op == Op::kLoop ? type.params : type.results;
    }
  };

  bool live() const { return b_.current().valid(); }
  void declare_locals();
  void step();
  void step_dead(Op op);
  void log_here();
  void translate(Op op);
  void translate_control(Op op);
  void translate_plain(Op op);
  // Ends the description: validation accepted something that this does not know.
  void refuse() { refused_ = true; }

  // Operands.
  void push(Value v) { stack_.push_back({v}); }
  Value pop();
  Condition pop_condition();
  Value settle(Operand& operand);
  std::vector<Value> pop_many(size_t count);

  // Control: build_control.cc.
  void on_block(Op op);
  void on_loop(uint32_t at);
  void on_if(uint32_t at);
  void on_else();
  void on_end();
  void on_br(uint32_t depth);
  void on_br_if(uint32_t depth);
  void on_br_table();
  void on_return();
  Frame& frame_at(uint32_t depth) { return frames_[frames_.size() - 1 - depth]; }
  Frame open_frame(Op op, BlockType type);
  Block target_of(Frame& f);
  void carry_to(Frame& f);
  void arrive_at(const Frame& f);
  void branch(Condition c, Block if_true, Block if_false);
  Block edge_to(Block target);
  void describe_edge(Block edge, Block target);

  // Coverage: build_function.cc.
  bool covers() const { return !context_.covered.empty(); }
  void begin(Block b);
  void cover();

  // Numeric instructions: build_numeric.cc.
  void numeric(Op op);
  void saturating(Op op);
  void on_select();

  // Memory and globals: build_memory.cc.
  Address memory_address(uint32_t offset, uint32_t width);
  Value memory_record();
  Value stable_base();
  Address global_address(uint32_t index);
  void on_load(Op op);
  void on_store(Op op);
  void on_memory_size();
  void on_global_get(uint32_t index);
  void on_global_set(uint32_t index);
  Value load_context(Type type, uint32_t offset);

  // Calls: build_call.cc.
  void on_call(uint32_t function);
  void on_call_indirect();
  void on_helper(Op op);
  void push_results(const FuncType& type, Value first, Value callee_context);

  const BuildContext& context_;
  const ModuleInfo& info_;
  const uint32_t index_;
  const FunctionInfo& function_;
  const FuncType& type_;
  FunctionBuilder& b_;
  CodeReader reader_;
  const BodyFacts& facts_;
  Value ctx_;
  Value memory_base_;  // none where the body does not need it
  std::vector<Variable> locals_;
  std::vector<Operand> stack_;
  std::vector<Frame> frames_;
  std::span<const LogPlace> logs_;  // at this instruction and later ones
  uint32_t dead_depth_ = 0;         // blocks opened in dead code
  uint32_t begun_ = 0;              // blocks, if coverage is wanted
  uint32_t at_ = 0;                 // of the instruction that is translated
  bool refused_ = false;            // there was one that is not translated
  Status failed_;                   // why the rest is not
};

}  // namespace uptier::wasm
