// inline_calls: replaces calls by the bodies of their callees.
//
// For a call:
//   count   how often its block runs, estimated
//   size    instructions of the callee after its own simplification, without constants and probes
//   top     the count of the function's most frequent block
//
// A callee may be inlined if it is
//
//   tiny     size <= 12             inlined at every call that runs: the call itself is as long
//   hot      count >= top / 200     inlined up to a size of 120 (40 if it has a loop that iterates,
//                                   because it spends its time there)
//
// Without a profile: leaves up to a size of 20. Calls are taken in the order of count / (size +
// 10), until the function has grown by its own size (at least 400, at most 4000). Inlining nests at
// most 6 deep, and a method at most twice inside itself.
//
// A hot indirect call tests for a target that takes 20 % of the executions that reach this test if
// the target would be inlined, 60 % if it would only be called. It tests for up to three targets,
// and for none that takes less than 2 % of all executions. The shares are relative to the
// executions that earlier tests leave, because a profile of a few moments may have the shares of
// the targets wrong.
//
// Source of the numbers: docs/notes/0014-inlining.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "jit/analysis/block_counts.h"
#include "jit/ir/function.h"
#include "jit/opt/inlinee.h"
#include "jit/probes/plan_sites.h"

namespace uptier::jit {

struct InlineRequest {
  MethodId self = {};
  std::span<const uint64_t> counts = {};      // of the blocks, as in BodyProfile; empty: no profile
  std::span<const SiteTargets> targets = {};  // of indirect calls
  InlineeSource* source = nullptr;            // null: nothing is inlined
  // Bodies with guards may be inlined: calls have call states, see attach_deopts.h.
  bool speculates = false;
  bool ask_to_leave = false;  // see OptimizeRequest
  double sample = 1;          // see OptimizeRequest
  // The probes of inlined bodies, other than block probes, that a copy observes; null: none.
  const SiteProbeRequest* observed = nullptr;
};

// Returns how many instructions a function of this size may grow by.
constexpr uint64_t inlining_room(uint64_t instructions) {
  return std::clamp<uint64_t>(instructions, 400, 4000);
}

// `f` has been through strip_patchpoints. Returns the counts of its blocks, inlined ones included;
// empty without a profile. Function::inlined lists the bodies.
BlockCounts inline_calls(Function& f, const InlineRequest& r);

}  // namespace uptier::jit
