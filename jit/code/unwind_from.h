// unwind_from: runs the compiler's unwinder from a given frame in the middle of the stack.
//
// _Unwind_Backtrace begins where it is called. So it is called from a function that consists of
// unwind tables: they claim that the function was called from the wanted frame.
#pragma once

#include <unwind.h>

#include <cstdint>

namespace uptier::jit {

// A frame, as its callee would restore it. Other registers that it keeps are not known: compilers
// find frames by rsp and rbp.
struct UnwindPlace {
  uint64_t rsp;
  uint64_t pc;  // a return address
  uint64_t rbp;
};

// Calls `visit` as _Unwind_Backtrace does, first with frames of the library itself, then with
// `from` and its callers, until it returns anything but _URC_NO_REASON. Thread: the owner of the
// stack.
extern "C" __attribute__((visibility("hidden"))) void uptier_unwind_from(const UnwindPlace* from,
                                                                         _Unwind_Trace_Fn visit,
                                                                         void* argument) noexcept;

}  // namespace uptier::jit
