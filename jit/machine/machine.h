// MachineFunction: instructions of the target over virtual registers, between lowering and
// emission.
//
// Nothing here depends on the machine. The target defines the four enums below, sets and reads the
// fields of MInst that use them, and implements the functions at the end of this header.
//
//   - still SSA: every virtual register (vreg) has one definition, an operand or a block parameter
//   - three addresses: `d = a op b`; emission copies a to d if the machine has two. A use that must
//     survive until d is written is `late`
//   - critical edges are split: a block with several successors passes no arguments, and each of its
//     successors has no other predecessor
//   - blocks are in layout order; each starts with kLabel and ends with its only terminator
//   - an i32 in a register has undefined upper bits unless `Vreg::clean`
//
// Instruction n owns two positions: 2n, where it reads, and 2n + 1, where it writes. A value whose
// last use is an early use ends at 2n + 1 (exclusive) and may share its register with the result.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/ir/function.h"
#include "jit/target/registers.h"
#include "uptier/ids.h"
#include "uptier/opcodes.h"

namespace uptier::jit::machine {

using Vreg = Id<struct VregTag>;

// The place of a value: none, a register, a spill slot, an outgoing stack argument, or a constant.
class Location {
 public:
  enum class Kind : uint8_t { kNone, kReg, kSlot, kOutgoing, kConstant };

  constexpr Location() = default;
  static constexpr Location reg(unsigned r) { return Location(Kind::kReg, r); }
  static constexpr Location slot(unsigned n) { return Location(Kind::kSlot, n); }
  static constexpr Location outgoing(unsigned n) { return Location(Kind::kOutgoing, n); }
  static constexpr Location constant(unsigned n) { return Location(Kind::kConstant, n); }

  constexpr Kind kind() const { return static_cast<Kind>(bits_ >> 28); }
  constexpr uint32_t index() const { return bits_ & 0x0FFFFFFF; }
  constexpr bool is_none() const { return bits_ == 0; }
  constexpr bool is_reg() const { return kind() == Kind::kReg; }
  constexpr bool is_slot() const { return kind() == Kind::kSlot; }
  constexpr bool is_constant() const { return kind() == Kind::kConstant; }
  constexpr uint32_t bits() const { return bits_; }
  friend constexpr bool operator==(Location, Location) = default;

 private:
  constexpr Location(Kind k, uint32_t n) : bits_(static_cast<uint32_t>(k) << 28 | n) {}
  uint32_t bits_ = 0;
};

enum class Role : uint8_t { kUse, kLateUse, kDef };

enum class Policy : uint8_t {
  kReg,    // needs a register
  kAny,    // a register or a slot
  kState,  // use: anywhere; it deserves no register and costs none
  kFixed,  // use: moved to `fixed` before the instruction; definition: found in `fixed` after it
};

struct Operand {
  Vreg vreg = {};         // none: the constant `constant` (kFixed uses only)
  Location fixed = {};    // for kFixed
  Location at = {};       // chosen by the register allocator
  uint32_t constant = 0;  // index into MachineFunction::constants
  Role role = Role::kUse;
  Policy policy = Policy::kReg;
};

// Defined by the target. The register allocator only stores these.
enum class MOp : uint8_t;   // 0 is the label that starts a block
enum class Cond : uint8_t;  // a condition of a branch, a select, a trap
enum class Test : uint8_t;  // the comparison or test that sets the flags
enum class Form : uint8_t;  // the kinds of the source operands

inline constexpr uint8_t kNoOperand = 0xFF;

struct MInst {
  MOp op{};
  uint8_t sub = 0;
  uint8_t width = 8;  // bytes of the operation
  Form form{};
  Cond cond{};
  Test test{};
  uint8_t scale = 0;                // log2
  TrapCode trap = TrapCode::kNone;  // of the memory access, the division, the test
  // Operands, by index in the list; kNoOperand if there is none.
  uint8_t d = kNoOperand;
  uint8_t x = kNoOperand;  // kSelect
  uint8_t y = kNoOperand;
  uint8_t a = kNoOperand;
  uint8_t b = kNoOperand;
  uint8_t base = kNoOperand;
  uint8_t index = kNoOperand;
  uint8_t operand_count = 0;  // for calls and kEntry: see `many`
  uint32_t operands_at = 0;
  uint32_t many = 0;  // operand count of kEntry, calls; else 0
  int32_t disp = 0;
  Origin loc;       // of `trap`
  Origin test_loc;  // kTrapIf: of its own trap, which is in `flags`
  uint32_t edges_at = 0;
  uint32_t edge_count = 0;
  uint64_t imm = 0;  // immediate, constant bits, callee, site; kObserve: site << 32 | offset
  uint32_t exit = UINT32_MAX;  // kTrapIf, kLeave: in MachineFunction::exits; none: it traps
  uint8_t from = 0;            // kConvert: source Type
  uint8_t to = 0;              // kConvert: target Type
  uint8_t flags = 0;  // kCallHost: MemFlags; kShiftVar: 1 if the count must be in cl; kTrapIf
  SiteId site = 0;    // of a call

  uint32_t count() const { return many ? many : operand_count; }
};

struct MArg {
  Vreg vreg;  // none: the constant
  uint32_t constant = 0;
};

struct MEdge {
  uint32_t to = 0;       // index in MachineFunction::blocks
  uint32_t args_at = 0;  // in `edge_args`, as many as `to` has parameters
};

struct MBlock {
  uint32_t begin = 0, end = 0;         // instructions
  uint32_t params_at = 0, params = 0;  // in `block_params`
  float frequency = 1;
  uint32_t loop = UINT32_MAX;  // innermost loop, of MachineFunction::loops
  bool align = false;          // a hot loop's header
  bool cold = false;           // in the cold part; all blocks after it are cold too
  bool bare = false;           // runs without the frame, if it can: see frame_plan.h
  std::vector<uint32_t> preds;
};

struct MLoop {
  uint32_t begin = 0, end = 0;  // blocks; cold blocks of the loop may lie elsewhere
  uint32_t parent = UINT32_MAX;
};

struct VregData {
  Type type = Type::kI64;
  bool clean = false;  // an i32 with zero upper bits
};

// From instruction `inst` on, the code belongs to `site`. It may be the start of a block; it is
// merged if the block has no start of its own any more.
struct MProbe {
  enum class Kind : uint8_t { kStarts, kGoesOn, kMerged };
  uint32_t inst;
  SiteId site;
  uint32_t body = 0;
  Kind kind = Kind::kGoesOn;
};

// A value that an exit transfers: a value of its Deopt, in an operand of the instruction or
// constant.
struct MExitValue {
  uint32_t operand = UINT32_MAX;  // index in the instruction's list; none: the constant
  Type type = Type::kI64;
  uint64_t bits = 0;
};
struct MExit {
  uint32_t deopt = 0;      // in Function::deopts
  uint32_t values_at = 0;  // in `exit_values`
  uint32_t values = 0;
};

struct MachineFunction {
  std::vector<MInst> insts;
  std::vector<Operand> operands;
  std::vector<MBlock> blocks;
  std::vector<MEdge> edges;
  std::vector<MArg> edge_args;
  std::vector<Vreg> block_params;
  std::vector<VregData> vregs;
  std::vector<uint64_t> constants;
  std::vector<MLoop> loops;
  std::vector<MExit> exits;
  std::vector<MExitValue> exit_values;
  std::vector<MProbe>
      probes;  // sorted; not instructions, so that the code is the same without them
  // Of the IR instruction that each of `insts` was made for; empty unless lines are wanted.
  std::vector<Origin> origins;
  bool has_calls = false;
  bool osr = false;             // entered with rbp the baseline frame
  uint32_t outgoing_words = 0;  // stack arguments of the call with the most

  std::span<Operand> operands_of(const MInst& i) {
    return {operands.data() + i.operands_at, i.count()};
  }
  std::span<const Operand> operands_of(const MInst& i) const {
    return {operands.data() + i.operands_at, i.count()};
  }
  std::span<const MEdge> edges_of(const MInst& i) const {
    return {edges.data() + i.edges_at, i.edge_count};
  }
  std::span<const Vreg> params_of(const MBlock& b) const {
    return {block_params.data() + b.params_at, b.params};
  }
  const MInst& terminator(const MBlock& b) const { return insts[b.end - 1]; }
  RegClass class_of(Vreg v) const { return machine::class_of(vregs[v.index()].type); }
};

// ---- What the target implements (x64/describe.cc) ----

// Returns the registers that the instruction destroys, besides those it defines.
RegMask clobbers(const MInst& i);

// A source that should share the register of the result: an operand's index in the list.
struct SharedWith {
  uint8_t operand = kNoOperand;
  float weight = 0;  // 1: saves a copy
};
// Returns the sources whose registers the instruction's code overwrites with the result, if
// possible.
std::array<SharedWith, 2> shares_register(const MachineFunction& m, const MInst& i);

// Returns whether the instruction needs the frame: calls, exits, and all that read or write
// relative to the frame pointer. See regalloc/frame_plan.h.
bool needs_frame(const MInst& i);

// Tests for the terminator of a block.
bool is_return(const MInst& i);
bool is_jump(const MInst& i);  // to one place, with arguments

}  // namespace uptier::jit::machine
