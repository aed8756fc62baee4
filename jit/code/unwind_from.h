// unwind_from: the compiler's unwinder, begun in the middle of the stack.
//
// _Unwind_Backtrace begins where it is called. A function that is nothing but unwind tables stands
// in front of it: they say that it was called from the place that is wanted.
#pragma once

#include <unwind.h>

#include <cstdint>

namespace uptier::jit {

// A frame, as its callee would give it back. Registers that it keeps beside these are not known:
// compilers find frames by rsp and rbp.
struct UnwindPlace {
  uint64_t rsp;
  uint64_t pc;  // a return address
  uint64_t rbp;
};

// Calls `visit` as _Unwind_Backtrace does, first with frames of the library's own, then with `from`
// and what has called it, until it returns anything but _URC_NO_REASON. Thread: whose stack it is.
extern "C" __attribute__((visibility("hidden"))) void uptier_unwind_from(const UnwindPlace* from,
                                                                         _Unwind_Trace_Fn visit,
                                                                         void* argument) noexcept;

}  // namespace uptier::jit
