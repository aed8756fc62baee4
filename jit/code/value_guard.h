// ValueGuard: the check in front of a version that is compiled for some values of the parameters.
//
//   counted: sub dword [calls], 1          the cell leads here while a window of calls is counted
//            js  told
//   quiet:   cmp parameter, value          otherwise here: a hit costs a comparison and a jump
//            jne miss                      (for each parameter)
//            jmp special
//   miss:    sub dword [misses], 1
//            js  told
//            jmp general                   correct for all values
//   told:    mov r11d, method
//            jmp guard_slow                C decides where the call goes: see Routines
//
// Nothing has been pushed when it runs, so both versions find the arguments unchanged. Both words
// are counted down without a lock: threads that run the guard at the same time may lose counts,
// which only causes a delay.
//
//   Thread: none of its own; the code any.
#pragma once

#include <cstdint>
#include <span>

#include "jit/code/code_space.h"
#include "jit/ir/param_value.h"
#include "uptier/builder.h"
#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier::jit {

struct GuardWords {
  int32_t calls = INT32_MAX;   // left of the window
  int32_t misses = INT32_MAX;  // left until guard_slow is called
};

struct ValueGuardRequest {
  MethodId method;
  const Signature& signature;
  std::span<const ParamValue> values;
  const void* special = nullptr;
  const void* general = nullptr;
  const void* told = nullptr;   // Routines::guard_slow()
  GuardWords* words = nullptr;  // outlives the code
};

struct ValueGuard {
  CodeSpan code;
  const void* counted = nullptr;
  const void* quiet = nullptr;
};

// Returns whether a parameter is passed in a register that a guard can compare.
bool can_guard(const Signature& s, uint32_t param);

// Errors: kInvalidArgument for parameters that cannot be guarded, kResourceExhausted.
Result<ValueGuard> make_value_guard(CodeSpace& space, const ValueGuardRequest& r);

}  // namespace uptier::jit
