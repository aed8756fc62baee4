// verify.h: finds the rules of the IR that a Function breaks, and where.
//
// Every rule of the IR is checked here, in this order; broken structure ends the search, because
// later checks rely on it:
//
//   structure   lists and ids in range, blocks laid out once, instructions placed once, terminators
//               last and nowhere else, values defined once
//   types       the opcode table: controlling type, operands, result, edges, flags, immediates
//   control     the entry has no predecessor, every block is reachable, definitions dominate uses
//   observation probes, loop headers and sites; a guard has a frame_state before it in its block
//               and no side effect between
//
// Safe on any contents of a Function, however broken. Thread: any. Cost: linear in the function,
// except the dominators (see dominators.h).
#pragma once

#include <string>
#include <vector>

#include "jit/ir/function.h"
#include "jit/ir/module.h"
#include "uptier/result.h"

namespace uptier::jit {

// Passes may duplicate, remove and reorder blocks, so fewer rules for sites and loops hold
// afterwards.
enum class Stage : uint8_t {
  kBuilt,        // sites and loop ids are dense and in build order, the hash fits
  kTransformed,  // they are in range
};

// The most sites and the most loops of a function (64 MiB of counters).
inline constexpr uint32_t kMaxSites = 1u << 23;

// Returns up to `limit` problems, each "@f b2: v5 = add.i32 v1, v2: operand 2 is i64, not i32".
// Empty: the function is well formed.
std::vector<std::string> find_problems(const Function& f, Stage stage = Stage::kBuilt,
                                       size_t limit = 20);

// Errors: kInvalidInput with the problems, one per line.
Status verify(const Function& f, Stage stage = Stage::kBuilt);

// Verifies every function, and that calls within the module have their callee's signature.
Status verify(const Module& m, Stage stage = Stage::kBuilt);

// Verifies only that calls have their callee's signature. Each function must pass the verifier.
Status verify_calls(const Module& m);

}  // namespace uptier::jit
