// number_sites: gives a function in build order its block probes and its numbers.
//
//   sites    block probes 1..blocks in layout order, then calls, then host probes, then those that
//            the library places by itself (param_uses.h, select_probes.h,
//            branch_probes.h), each in order
//   loops    0.. in layout order
//   cfg_hash of the result
//
// Shared by the builder and by the reader of text, so that both number alike.
#pragma once

#include "jit/ir/function.h"
#include "jit/ir/turns.h"

namespace uptier::jit {

// Numbers a function from scratch: block probes it already has are placed again. The hash stays 0
// while a block has no terminator or an edge leads nowhere (the verifier names those).
void number_sites(Function& f);

// Whose probe it is, in the order of sites: the host's; the library's; its own of branches, which came
// later, so that they leave the sites of all others as they were in profiles that were saved before.
inline constexpr uint32_t kProbeOwners = 3;
inline uint32_t owner_of_probe(const Inst& probe) {
  if ((probe.flags & kProbeOwn) == 0) return 0;
  return (probe.flags & kProbeOfBranch) == 0 ? 1 : 2;
}

// Returns whether the last instruction of the block ends it.
inline bool is_terminated(const Function& f, Block b) {
  const auto& insts = f.block(b).insts;
  return !insts.empty() && (info(f.inst(insts.back()).op).effects & kEndsBlock) != 0;
}

}  // namespace uptier::jit
