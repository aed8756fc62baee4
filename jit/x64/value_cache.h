// ValueCache: the locations of values while a block of baseline code is being compiled.
//
// A value has a home in the frame and perhaps a register. The home is its canonical slot, or a
// spill slot that a value of one block gets on demand. Registers are caches:
//
//   - A register is `dirty` if it is newer than the home. Only a definition makes it so.
//   - At the end of a block every dirty value that lives on is stored (flush). The next block
//     starts with empty registers, or keeps those of its only predecessor if that directly precedes
//     it.
//   - Constants have no home. They are made again where they are needed.
//   - After its last use in its block, a value that is not used in other blocks releases its
//     register and its spill slot.
//
// An instruction pins the registers that it uses; end_instruction() unpins them all. r11, xmm15,
// rsp and rbp are never handed out.
//
// Nothing here depends on which copy is compiled, so both copies of a method place every value
// alike. The exceptions are the values of probes: in the copy that observes them they live up to
// the probe.
//
// The cache does not know the IR. Its user declares the values, and counts their uses.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "jit/analysis/frame_layout.h"
#include "jit/x64/code_buffer.h"

namespace uptier::jit::x64 {

inline constexpr Gp kScratch = x86::r11;
inline constexpr Xmm kXmmScratch = x86::xmm15;

class ValueCache {
 public:
  // `frame` must outlive the cache. `reserved`: a mask of registers that the cache never uses.
  ValueCache(CodeBuffer& b, const FrameLayout& frame, uint32_t reserved);

  // ---- Declaration of the values; comes first
  void set_type(Value v, Type t) { state(v).type = t; }
  void set_crosses(Value v) { state(v).flags = kCrosses; }  // it is used outside its block
  void set_constant(Value v, uint64_t bits) {
    state(v).flags = kConstant;
    constants_[v.index()] = bits;
  }

  // ---- Blocks
  // `keep`: registers still hold the values that the previous block left. Count the uses of values
  // in the block next, edge arguments included.
  void begin_block(bool keep) {
    if (!keep) forget_all();
  }
  void count_use(Value v) { ++state(v).uses; }
  // Stores dirty values that live on. Keeps the flags.
  void flush();
  // Drops the values that are local to the block. All their uses must be over.
  void end_block();
  // Records that an argument of the function is in a register at the entry.
  void enter(Value v, unsigned reg);

  // ---- Queries
  bool is_constant(Value v) const { return (state_[v.index()].flags & kConstant) != 0; }
  uint64_t constant_bits(Value v) const { return constants_[v.index()]; }
  // Returns whether a constant fits a sign-extended 32-bit immediate of an instruction of its width.
  bool is_immediate(Value v) const;
  bool in_register(Value v) const { return state_[v.index()].reg != kNoReg; }
  unsigned register_of(Value v) const { return state_[v.index()].reg; }
  // Returns whether this is the last use of the value, so that its register may be overwritten.
  bool dies(Value v) const;
  // Returns whether the value has no uses left, here or in other blocks.
  bool is_dead(Value v) const { return uses(v) == 0 && !crosses(v); }
  // Returns the number of uses left in this block.
  uint32_t uses(Value v) const { return state_[v.index()].uses; }
  // Returns whether the value is used outside its block.
  bool crosses(Value v) const { return (state_[v.index()].flags & kCrosses) != 0; }
  bool is_dirty(Value v) const { return (state_[v.index()].flags & kDirty) != 0; }
  // Returns the home's displacement from rbp; 0 if there is none yet.
  int32_t home(Value v) const { return state_[v.index()].home; }
  Type type_of(Value v) const { return state_[v.index()].type; }

  // ---- Operands; each pins its register
  // Returns the register that caches v, after loading it if necessary.
  Gp gp_of(Value v) { return x86::gpq(reg_of(v)); }
  Xmm xmm_of(Value v) { return x86::xmm(reg_of(v) - 16); }
  // The same, with the upper half of an i32 known to be zero.
  Gp index_of(Value v);
  // Returns a register with a copy of v that may be overwritten, and uses v once. If v dies, the
  // copy is v's own register.
  Gp take_gp(Value v) { return x86::gpq(take(v)); }
  Xmm take_xmm(Value v) { return x86::xmm(take(v) - 16); }
  // The same, in a given register.
  void take_in(Value v, unsigned reg);
  Gp new_gp() { return x86::gpq(allocate(Type::kI64)); }
  Xmm new_xmm() { return x86::xmm(allocate(Type::kF64) - 16); }
  // Empties a register for an instruction that overwrites it, and pins it.
  void vacate(unsigned reg);
  // Uses v once; the last use frees its register at once. Call it when the instruction that reads v
  // has been emitted, or cannot overwrite v's register before it reads it.
  void use(Value v) {
    use_later(v);
    settle(v);
  }
  // use() in two steps, for an instruction that reads v only after other code: the first counts the
  // use, the second releases the register and the spill slot.
  void use_later(Value v) {
    assert(uses(v) != 0);
    --state(v).uses;
  }
  void settle(Value v) {
    const State& s = state(v);
    if (s.uses == 0 && (s.flags & (kCrosses | kConstant)) == 0) give_up(v);
  }
  // Unpins a register that is not needed any more.
  void unpin(unsigned reg) { pinned_ &= ~(1u << reg); }

  // ---- Results
  // Defines v in `reg`. `clean`: an i32's upper half is zero.
  void define(Value v, const Gp& reg, bool clean = true) { define(v, reg.id(), clean); }
  void define(Value v, const Xmm& reg) { define(v, reg.id() + 16, true); }
  void end_instruction() { pinned_ = reserved_; }

  // ---- Calls
  // Stores every dirty value that is needed after this point. Registers keep their contents.
  void save_all();
  // Forgets all registers.
  void forget_all();

  // ---- Entering in the middle
  // A value that is in a register now.
  struct Cached {
    Value value;
    uint8_t reg;
  };
  std::vector<Cached> cached() const;
  // reg = v, loaded from its home whatever register holds it now. Changes no state.
  void load_home(unsigned reg, Value v);

  // ---- Places
  Mem home_operand(Value v) const;
  // reg = v. Changes no state. v must have a location.
  void copy_to(unsigned reg, Value v);
  // Returns the number of bytes below rbp that homes occupy, spill slots included.
  uint32_t frame_bytes() const { return static_cast<uint32_t>(-lowest_); }

 private:
  static constexpr uint8_t kNoReg = 0xff;
  enum Flag : uint8_t { kConstant = 1, kCrosses = 2, kDirty = 4, kClean = 8, kSpilled = 16 };
  struct State {
    uint32_t uses = 0;
    int32_t home = 0;
    uint8_t reg = kNoReg;
    uint8_t flags = 0;
    Type type = Type::kNone;
  };

  State& state(Value v) { return state_[v.index()]; }
  void define(Value v, unsigned reg, bool clean);
  unsigned reg_of(Value v);
  unsigned take(Value v);
  unsigned allocate(Type t);
  unsigned choose(Type t) const;
  void evict(unsigned reg);
  void bind(Value v, unsigned reg) {
    owner_[reg] = v;
    taken_ |= 1u << reg;
    state(v).reg = static_cast<uint8_t>(reg);
  }
  void unbind(unsigned reg) {
    state(owner_[reg]).reg = kNoReg;
    owner_[reg] = Value::none();
    taken_ &= ~(1u << reg);
  }
  void give_up(Value v);
  void store(Value v);
  void drop_spill(State& s);
  bool is_free(unsigned reg) const { return !owner_[reg].valid() && (pinned_ >> reg & 1) == 0; }
  // Calls `visit(value, reg)` for the values in registers, in register order. `visit` may unbind
  // `reg`.
  template <typename Visit>
  void each_taken(Visit visit) const {
    for (uint32_t left = taken_; left != 0; left &= left - 1) {
      auto reg = static_cast<unsigned>(std::countr_zero(left));
      visit(owner_[reg], reg);
    }
  }

  CodeBuffer& b_;
  Assembler& a_;
  std::vector<State> state_;
  std::vector<uint64_t> constants_;  // by value
  Value owner_[32];
  uint32_t taken_ = 0;       // registers that have an owner
  const uint32_t reserved_;  // mask of registers that are never handed out here
  uint32_t pinned_;
  std::vector<int32_t> free_spills_;
  int32_t lowest_;
};

}  // namespace uptier::jit::x64
