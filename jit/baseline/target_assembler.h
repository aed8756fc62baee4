// TargetAssembler: the assembler for the machine that the library is compiled for.
//
// It is a class, not an interface with virtual functions, so that an operation of one instruction
// costs no call. jit/README.md, "A second target", lists what a target must provide.
#pragma once

#if defined(__x86_64__)
#include "jit/x64/baseline_assembler.h"
#else
#error "no baseline assembler for this machine: see jit/README.md, A second target"
#endif

namespace uptier::jit::baseline {

using TargetAssembler = x64::BaselineAssembler;
using ValueCache = x64::ValueCache;

}  // namespace uptier::jit::baseline
