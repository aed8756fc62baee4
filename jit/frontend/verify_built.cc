#include "jit/frontend/verify_built.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "jit/analysis/dominators.h"
#include "jit/frontend/number_sites.h"
#include "jit/frontend/verify_impl.h"

namespace uptier::jit {

Status verify_built(const Function& f) {
  if (!Verifier(f, Stage::kBuilt, 1).host_did_right()) return verify(f);
  assert(find_problems(f).empty() && "the builder vouches for the rest");
  return {};
}

bool Verifier::host_did_right() {
  if (!std::ranges::all_of(f_.layout, [&](Block b) { return is_filled(b); })) return false;
  check_tables();
  std::optional<Dominators> d;  // many functions use only values that the entry defines
  for (Block b : f_.layout) {
    // A value defined in the same block was defined before the host could use it.
    auto defined = [&](Value v) {
      Block at = f_.value(v).block;
      if (at == b || at == f_.entry()) return true;
      if (!d) d = compute_dominators(f_);
      return d->dominates(at, b);
    };
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      if (!std::ranges::all_of(f_.args(i), defined)) return false;
      has_guards_ |= i.op == Opcode::kGuard;
      check_inst(b, i);
    }
    for (const Edge& e : f_.successors(b)) {
      if (!std::ranges::all_of(f_.list(e.args), defined)) return false;
    }
    if (has_guards_) check_guards(b);
  }
  return problems_.empty();
}

// Returns whether the block and its successors have terminators.
bool Verifier::is_filled(Block b) const {
  if (!is_terminated(f_, b)) return false;
  return std::ranges::all_of(f_.successors(b),
                             [&](const Edge& e) { return is_terminated(f_, e.to); });
}

}  // namespace uptier::jit
