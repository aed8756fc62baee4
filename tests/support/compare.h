// compare.h: compares compiled code with the interpreter: the answer, the memory that was written,
// and the host calls.
#pragma once

#include <string>
#include <vector>

#include "tests/support/ir_corpus.h"
#include "tests/support/random_ir.h"

namespace uptier::test {

// The effects of a call in the interpreter.
struct Expected {
  Answer answer;
  std::string bytes;   // of the scratch memory after the call
  uint64_t notes = 0;  // corpus_notes after the call
};

inline Expected expected_of(jit::Interpreter& oracle, MethodId m, const std::vector<uint64_t>& args,
                            Scratch& scratch) {
  scratch.fill();
  corpus_notes = 0;
  Expected e;
  e.answer = interpret(oracle, m, args);
  e.bytes = scratch.bytes();
  e.notes = corpus_notes;
  return e;
}

// Calls `run()`, which returns {bits, trap}, on freshly filled memory. Returns how the result
// differs, or "".
template <typename Run>
std::string difference(const Expected& want, Type result, Scratch& scratch, Run run) {
  scratch.fill();
  corpus_notes = 0;
  auto got = run();
  const Answer& a = want.answer;
  bool same = got.trap == a.trap && want.notes == corpus_notes && want.bytes == scratch.bytes() &&
              (a.trap != TrapCode::kNone || same_value(result, got.bits, a.bits));
  if (same) return "";
  return answer_text(result, {got.bits, got.trap}) + ", not " + answer_text(result, a);
}

}  // namespace uptier::test
