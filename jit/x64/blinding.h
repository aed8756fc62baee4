// BlindAssembler: constants that a guest chooses do not appear in code as they are.
//
// Who chooses a program's constants chooses bytes of executable memory, and could jump into the middle
// of an instruction that carries them. So each one is written as the difference to a number that
// nobody can guess, and put together where it is needed, with the flags kept:
//
//   mov r, c            mov r, c - k;  lea r, [r + k]
//   mov r64, c64        mov r, bswap(c - k2) - k1;  lea r, [r + k1];  bswap r;  lea r, [r + k2]
//   op x, c             mov r11, c - k;  lea r11, [r11 + k];  op x, r11
//   op [b + i + c], x   mov r11, c - k;  lea r11, [r11 + k];  lea r11, [r11 + b];  op [r11 + i], x
//
// The numbers come from a generator that is started again for each body. Where r11 is taken, another
// register is lent, and waits in xmm15 (both are the compilers' scratch registers, and so free wherever
// they name neither).
//
// Not touched: what fits 17 bits with its sign (`above`), which leaves two bytes to choose; addresses
// relative to rsp, rbp and r11 and what is added to rsp, which are places in frames and tables that
// the compilers lay out; what is pushed, which are the numbers of places in code. Constants of floats
// lie in memory: see emit_constant() in jit/x64/macros.h.
//
// It is what it is derived from until start() is called.
#pragma once

#include <cstdint>

#include "jit/x64/asmjit.h"

namespace uptier::jit {

class BlindAssembler : public Assembler {
 public:
  // From here on constants outside of -above - 1 .. above are blinded.
  void start(uint64_t seed, uint32_t above);
  bool is_on() const { return on_; }
  // Returns whether a constant of so many bits with its sign is one to hide.
  bool hides(int64_t c) const { return on_ && (c > int64_t{above_} || c < -int64_t{above_} - 1); }
  // Switches it off and on, around what the library alone chooses.
  void pause() { ++paused_; }
  void go_on() { --paused_; }
  uint64_t draw();

  asmjit::Error _emit(asmjit::InstId id, const asmjit::Operand_& o0, const asmjit::Operand_& o1,
                      const asmjit::Operand_& o2, const asmjit::Operand_* more) override;

 protected:
  // What was emitted last is the beginning of an instruction that is rewritten, `bytes` long.
  virtual void instruction_moved(size_t bytes) = 0;

 private:
  using Operand_ = asmjit::Operand_;
  // An instruction with up to three operands, and what of it is to be hidden.
  struct Rewritten {
    asmjit::InstId id = 0;
    asmjit::Operand ops[3];
    int immediate = -1;  // place among the operands
    int memory = -1;
    uint32_t used = 0;  // registers that are named
    Gp lent;            // to be given back from xmm15
    bool lends = false;
  };

  bool find(Rewritten& r) const;
  asmjit::Error rewrite(Rewritten& r);
  asmjit::Error refuse(const char* why);
  bool take(Rewritten& r, Gp* scratch);
  void load(const Gp& d, uint64_t bits);
  bool hide_immediate(Rewritten& r, Gp* product);
  bool hide_offset(Rewritten& r);

  uint64_t state_ = 0;
  uint32_t above_ = 0;
  uint32_t paused_ = 0;
  bool on_ = false;
};

}  // namespace uptier::jit
