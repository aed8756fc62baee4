// number_sites: gives a function in build order its block probes and its numbers.
//
//   sites    block probes 1..blocks in layout order, then calls, then host probes, then the probes
//            that the library adds (param_uses.h, select_probes.h, branch_probes.h), each in order
//   loops    0.. in layout order
//   cfg_hash of the result
//
// Shared by the builder and the reader of text, so that both number alike.
#pragma once

#include "jit/ir/function.h"
#include "jit/ir/turns.h"

namespace uptier::jit {

// Numbers a function from scratch: block probes that it already has are placed again. The hash
// stays 0 while a block has no terminator or an edge has no valid target (the verifier reports
// both).
void number_sites(Function& f);

// Returns the owner of a probe, in the order of sites: the host; the library; the library's probes
// of branches. These came later and so have the last sites, because the sites of all other probes
// must stay as they are in saved profiles.
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
