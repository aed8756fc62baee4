// compare.h: whether code does what the interpreter does: the answer, the memory that it wrote, and
// the host calls that it made.
#pragma once

#include <string>
#include <vector>

#include "tests/support/ir_corpus.h"
#include "tests/support/random_ir.h"

namespace uptier::test {

// What the interpreter made of a call.
struct Expected {
  Answer answer;
  std::string bytes;   // of the scratch memory
  uint64_t notes = 0;  // corpus_notes
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

// Runs `run()`, which answers {bits, trap}, on fresh memory. Returns how it differs, or "".
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
