// BlindAssembler: constants that a guest chooses never appear literally in code.
//
// Someone who chooses a program's constants chooses bytes of executable memory, and could jump into
// the middle of an instruction that carries them. So each constant is written as the difference to
// an unpredictable number, and computed where it is needed, with the flags preserved:
//
//   mov r, c            mov r, c - k;  lea r, [r + k]
//   mov r64, c64        mov r, bswap(c - k2) - k1;  lea r, [r + k1];  bswap r;  lea r, [r + k2]
//   op x, c             mov r11, c - k;  lea r11, [r11 + k];  op x, r11
//   op [b + i + c], x   mov r11, c - k;  lea r11, [r11 + k];  lea r11, [r11 + b];  op [r11 + i], x
//
// The numbers come from a generator that is started again for each body. If the instruction names
// r11, another register is lent, and its value waits in xmm15. Both r11 and xmm15 are scratch
// registers of the compilers, so they are free wherever an instruction does not name them.
//
// Not changed: constants that fit 17 bits with their sign (`above`), which leave two bytes to
// choose; powers of two and the numbers next below them, with either sign, which leave a shift to choose; addresses relative to rsp, rbp and r11 and constants added to rsp, since the compilers
// lay out frames and tables; pushed constants, which are numbers of places in code. Constants of
// floats lie in memory: see emit_constant() in jit/x64/macros.h.
//
// Until start() is called, it behaves like the class it is derived from.
#pragma once

#include <cstdint>

#include "jit/x64/asmjit.h"

namespace uptier::jit {

class BlindAssembler : public Assembler {
 public:
  // Blinds constants outside of -above - 1 .. above from here on.
  void start(uint64_t seed, uint32_t above);
  bool is_on() const { return on_; }
  // Returns whether a constant is to be hidden.
  bool hides(int64_t c) const {
    return on_ && (c > int64_t{above_} || c < -int64_t{above_} - 1) && !is_plain(c);
  }
  // Stop and resume blinding, around code whose constants only the library chooses.
  void pause() { ++paused_; }
  void go_on() { --paused_; }
  uint64_t draw();

  asmjit::Error _emit(asmjit::InstId id, const asmjit::Operand_& o0, const asmjit::Operand_& o1,
                      const asmjit::Operand_& o2, const asmjit::Operand_* more) override;

 protected:
  // The code emitted last, `bytes` long, is the start of a rewritten instruction. The instruction
  // itself follows.
  virtual void instruction_moved(size_t bytes) = 0;

 private:
  static bool is_plain(int64_t c);

  using Operand_ = asmjit::Operand_;
  // An instruction with up to three operands, and which of them are to be hidden.
  struct Rewritten {
    asmjit::InstId id = 0;
    asmjit::Operand ops[3];
    int immediate = -1;  // place among the operands
    int memory = -1;
    uint32_t used = 0;  // mask of the registers that the instruction names
    Gp lent;            // to be restored from xmm15
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
