// TargetAssembler: how baseline code is made on the machine that this is compiled for.
//
// It is a class and no interface with virtual functions, so that what a target does in one instruction
// costs no call. What a target has to provide is listed in jit/README.md, A second target.
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
