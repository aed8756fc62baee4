// inline_calls: which calls are replaced by the bodies that they call.
//
// With, for a call,
//   count   how often its block runs, estimated
//   size    instructions of the callee after its own simplification; constants and probes not
//   top     the count of the function's most frequent block
// a callee that may be inlined is
//
//   tiny     size <= 12             inlined wherever it is called at all: the call is as long
//   hot      count >= top / 200     inlined up to a size of 120 (40 with a loop in it that goes
//                                   round: its time is spent there)
//
// and without a profile a leaf of up to 20. Calls go in the order of count / (size + 10), until the
// function has grown by its own size (at least by 400, at most by 4000); bodies lie inside each
// other 6 deep at most. A recursion that is hot is written out to three levels: a method lies
// inside itself twice at most.
//
// An indirect call that is hot is asked for a target that takes 20 % of the executions that come to
// the question when that one would be inlined, 60 % when it would only be called; for up to three,
// and for none that takes less than 2 % of all. So the second is asked for however rare it is, if
// nearly all that the first leaves is its: a profile of a few moments may have the shares wrong.
//
// Where the numbers come from: docs/notes/0014-inlining.md.
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
  std::span<const uint64_t> counts = {};      // of the blocks, as BodyProfile's; empty: no profile
  std::span<const SiteTargets> targets = {};  // of indirect calls
  InlineeSource* source = nullptr;            // null: nothing is inlined
  // Bodies with guards may be inlined: calls have call states, see attach_deopts.h.
  bool speculates = false;
  bool ask_to_leave = false;  // see OptimizeRequest
  double sample = 1;          // likewise
  // What a copy observes of bodies beside their blocks; null: nothing.
  const SiteProbeRequest* observed = nullptr;
};

// Returns how many instructions a function of so many may grow by.
constexpr uint64_t inlining_room(uint64_t instructions) {
  return std::clamp<uint64_t>(instructions, 400, 4000);
}

// `f` has been through strip_patchpoints. Returns the counts of its blocks and of the bodies in it;
// empty without a profile. Bodies stay in Function::inlined.
BlockCounts inline_calls(Function& f, const InlineRequest& r);

}  // namespace uptier::jit
