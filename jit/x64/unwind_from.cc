#include "jit/code/unwind_from.h"

#include <cstddef>

namespace uptier::jit {

static_assert(offsetof(UnwindPlace, rsp) == 0 && offsetof(UnwindPlace, pc) == 8 &&
              offsetof(UnwindPlace, rbp) == 16);

// The escapes, with rbx = from:
//
//   DW_CFA_def_cfa_expression       breg3 0, deref   the caller's rsp is [from]
//   DW_CFA_expression  16 (return)  breg3 8          the caller's pc is at from + 8
//   DW_CFA_expression   6 (rbp)     breg3 16         the caller's rbp is at from + 16
asm(R"(
  .pushsection .text
  .p2align 4
  .globl uptier_unwind_from
  .hidden uptier_unwind_from
  .type uptier_unwind_from, @function
uptier_unwind_from:
  .cfi_startproc
  push %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  mov %rdi, %rbx
  .cfi_remember_state
  .cfi_escape 0x0f, 0x03, 0x73, 0x00, 0x06
  .cfi_escape 0x10, 0x10, 0x02, 0x73, 0x08
  .cfi_escape 0x10, 0x06, 0x02, 0x73, 0x10
  .cfi_same_value %rbx
  mov %rsi, %rdi
  mov %rdx, %rsi
  call _Unwind_Backtrace@PLT
  nop
  .cfi_restore_state
  pop %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size uptier_unwind_from, .-uptier_unwind_from
  .popsection
)");

}  // namespace uptier::jit
