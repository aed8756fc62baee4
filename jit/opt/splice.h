// splice: replaces a direct call by the body of its callee.
//
//     b: ... call f(x) ...        b:     ... body of f's entry, with x for its parameters ...
//                            ->   ...    further blocks of the body; each return jumps to
//                                 rest(v: the result): probe block b resumes; ...
//
// Everything that comes from the body carries its number, see Origin. Loads that the callee marks
// as invariant are invariant while the callee runs, but perhaps not while the caller does. So they
// lose the flag, unless the caller itself has an invariant load of the same place.
#pragma once

#include <set>
#include <tuple>

#include "jit/ir/function.h"

namespace uptier::jit {

// The places of a function's invariant loads (kMemInvariant) with one operand. They do not change
// while the function runs, and can be read at any time.
class InvariantPlaces {
 public:
  explicit InvariantPlaces(const Function& f);
  bool has(const Function& f, const Inst& load) const { return places_.contains(key(f, load)); }
  // Returns the base of a load in this function that is like `load`, from another function; or
  // none.
  Value base_of(const Inst& load) const {
    auto at = places_.lower_bound({load.op, load.type, load.imm, 0});
    bool like = at != places_.end() && std::get<0>(*at) == load.op &&
                std::get<1>(*at) == load.type && std::get<2>(*at) == load.imm;
    return like ? Value(std::get<3>(*at)) : Value::none();
  }

 private:
  using Key = std::tuple<Opcode, Type, uint64_t, uint32_t>;
  static Key key(const Function& f, const Inst& load) {
    return {load.op, load.type, load.imm, f.args(load)[0].index()};
  }
  std::set<Key> places_;
};

// Returns whether a body may be spliced into others: its host functions have addresses, and its
// guards have deopt targets.
bool can_splice(const Function& callee);

// Splits a block before instruction `position`; returns the block of the rest, laid out after it.
// `b` is left without a terminator. The rest resumes the last site in `b`.
Block split_block(Function& f, Block b, size_t position);

struct Spliced {
  uint32_t body = 0;          // the number of the new body
  Block rest;                 // the code after the call
  std::vector<Block> blocks;  // of the body, in its order, except the entry
};

// Replaces instruction `position` of block `b`, a direct call with the signature of `callee`, which
// has been through strip_patchpoints and may be spliced. `state`: the call's call state; may be
// none only if the callee has no guards.
Spliced splice(Function& f, Block b, size_t position, const Function& callee, MethodId method,
               const InvariantPlaces& invariant, InstId state);

}  // namespace uptier::jit
