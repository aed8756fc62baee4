// The instruction selector's class, shared by the lower*.cc files; see lower.h.
#pragma once

#include <optional>
#include <vector>

#include "jit/x64/lower.h"

namespace uptier::jit::x64 {

// Finds which i32 values must have zero upper halves, and which values are only new names for
// others (wrap, extend_u).
struct Widths {
  // By Value::index(): the value whose vreg this one shares; often itself.
  std::vector<Value> alias;
  std::vector<bool> clean;  // by Value::index(): some use relies on a zero upper half
};
Widths find_widths(const Function& f);

// The order of machine blocks: IR blocks, and one block for each critical edge.
struct BlockPlan {
  struct Entry {
    Block block = {};   // an IR block, or none for a split edge
    Block from = {};    // split edge: its source
    uint32_t edge = 0;  // split edge: an index in Function::edges
    float frequency = 1;
    uint32_t loop = kNoLoop;  // LoopNest index
    bool cold = false;
  };
  std::vector<Entry> order;
  std::vector<uint32_t> place;       // by Block::index(): place in `order`
  std::vector<uint32_t> edge_place;  // by edge: place in `order` of its split block, or UINT32_MAX
};
BlockPlan plan_blocks(const Function& f, const LoopNest& n, const Frequencies& q);

class Lowering {
 public:
  explicit Lowering(const LowerInput& in);
  MachineFunction run();

 private:
  // ---- lower.cc: blocks and values
  void lower_block(uint32_t place);
  void lower_split(uint32_t place);
  void lower_inst(InstId id);
  void select(InstId id);
  void flush_group();
  void close_block(uint32_t place);
  void turn_round();
  void add_loops();
  void add_preds();
  void count_uses();
  void color_block(Block b);
  bool is_barrier(const Inst& i) const;

  Value root(Value v) const { return widths_.alias[v.index()]; }
  const Inst* def(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() ? &f_.inst(i) : nullptr;
  }
  const Inst* def(Value v, Opcode op) const {
    const Inst* i = def(v);
    return i && i->op == op ? i : nullptr;
  }
  std::optional<uint64_t> constant_of(Value v) const;
  // Returns the constant as a sign-extended 32-bit immediate of an operation of that width.
  std::optional<int32_t> imm_of(Value v) const;
  bool is_wide_value(Value v) const { return is_wide(f_.type_of(v)); }
  Vreg vreg(Value v);  // for a use; never a constant
  Vreg new_vreg(Type t);
  Vreg use(Value v);  // the same, but a constant gets a new vreg
  uint32_t constant_index(uint64_t bits);
  bool needed(Value v) const { return vregs_[root(v).index()].valid(); }

  // Starts an instruction. The calls below add operands; `emit` adds the instruction to the group.
  void begin(MOp op, unsigned width, Origin loc = {});
  uint8_t add(Vreg v, Role role, Policy policy, Location fixed = {});
  void def_d(Value v) { cur_.d = add(vreg(v), Role::kDef, Policy::kReg); }
  void use_a(Value v, Policy p = Policy::kAny, Role r = Role::kUse) { cur_.a = add(use(v), r, p); }
  void use_b(Value v, Policy p = Policy::kAny, Role r = Role::kLateUse) {
    cur_.b = add(use(v), r, p);
  }
  void emit();

  // ---- lower_probe.cc
  std::optional<uint32_t> count_offset(const Inst& i) const;
  std::optional<ProbePlan::Site> observed_site(const Inst& i) const;
  Vreg slab();
  void count_at(uint32_t offset);
  void convert_to(Vreg to, Vreg from, Opcode op, Type from_type, Type to_type);
  Vreg observed(Value v);  // as 64 bits, see lower_probe.cc
  void observe(const Inst& i, const ProbePlan::Site& s);
  void lower_probe(const Inst& i);
  void lower_tally(const Inst& i);
  void load_slab();

  // ---- lower_memory.cc
  // Returns the load that defines `v` if it may become a memory operand of the current instruction.
  const Inst* foldable_load(Value v) const;
  void add_address(const Inst& access, Role role);
  void lower_load(const Inst& i);
  void lower_store(const Inst& i);
  bool lower_alu_store(const Inst& i);
  void lower_bulk(const Inst& i);
  // Adds the second source of the current instruction: an immediate, memory, a constant, or a
  // register. `role` applies to registers; those of an address get the same role.
  void add_source(Value v, Role role, bool allow_imm);
  void fold_memory(const Inst& load, Role role, Form form);

  // ---- lower_int.cc
  void lower_binary(const Inst& i);
  void lower_add(const Inst& i);
  bool lower_scaled_add(const Inst& i);
  void lower_alu(const Inst& i, AluOp op, MOp kind = MOp::kAlu);
  void lower_mul(const Inst& i);
  bool lower_mul_lea(const Inst& i, uint64_t c);
  void lower_and(const Inst& i);
  void lower_shift(const Inst& i, ShiftOp op);
  void lower_div(const Inst& i);
  void lower_mul_high(const Inst& i);
  void lower_unary(const Inst& i);
  void lower_extend(const Inst& i, Extension e);
  void lower_trapping(const Inst& i);
  void lower_overflow(const Inst& i);

  // ---- lower_condition.cc
  // Fills the test fields and sources of the current instruction so that its condition is `v != 0`
  // (`negate`: `v == 0`). Starts no instruction.
  void add_test(Value v, bool negate);
  void add_test_of(Value v, bool negate);
  void add_int_test(const Inst& compare, bool negate);
  void add_zero_test(Value v, bool wide, bool negate);
  void add_float_test(const Inst& compare, bool negate);
  void add_overflow_test(const Inst& check, bool negate);
  bool add_narrow_compare(const Inst& compare, Cond c);
  bool can_fold_test(const Inst& compare) const;
  void lower_set(const Inst& i);
  void lower_select(const Inst& i);
  void lower_trap_if(InstId id);
  bool add_fuel_test(InstId trap);
  void lower_guard(InstId id);
  void pair_sums(Block b);
  bool is_result(const Inst& overflows, const Inst& i) const;
  void add_sum(InstId asks);
  Vreg undone() const;
  void leave(const Inst& guard, Leaving how);
  void add_exit(const Inst& guard);
  void lower_branch(const Inst& i);
  void lower_switch(const Inst& i);

  // ---- lower_float.cc
  void lower_float_binary(const Inst& i);
  void lower_float_unary(const Inst& i);
  void lower_convert(const Inst& i);

  // ---- lower_call.cc
  void lower_entry();
  void lower_call(const Inst& i);
  void lower_return(const Inst& i);
  void lower_jump(const Inst& i);
  void add_edge(uint32_t edge, bool split);

  const LowerInput& in_;
  const Function& f_;
  Widths widths_;
  BlockPlan plan_;
  MachineFunction m_;
  std::vector<Vreg> vregs_;          // by root Value::index()
  std::vector<uint32_t> use_count_;  // by Value::index()
  std::vector<uint32_t> color_;      // by InstId: number of barriers before it in its block
  std::vector<bool> folded_;         // by InstId: part of another instruction
  std::vector<InstId> sum_of_;       // by InstId of a guard or trap: the sum that it computes
  Block block_;                      // the block being lowered
  bool fold_ok_ = true;              // the condition being lowered has no other use
  Origin here_;                      // of the instruction being lowered
  uint32_t current_color_ = 0;       // color_ of the instruction being lowered
  MInst cur_;                        // the machine instruction being made, and its operands
  std::vector<Operand> cur_operands_;
  Vreg slab_;                 // none if nothing counts
  std::vector<MInst> group_;  // for the IR instruction being lowered, in forward order
  // MachineFunction::insts is filled backwards and reversed at the end; these are reversed with it.
  std::vector<uint32_t> block_end_;  // by place
};

}  // namespace uptier::jit::x64
