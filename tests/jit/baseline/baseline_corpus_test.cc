// Runs the programs of tests/ir through the baseline compiler: in both copies, and switching
// between them.
#include <gtest/gtest.h>

#include "tests/support/baseline_module.h"
#include "tests/support/ir_corpus.h"

namespace uptier::test::baseline_corpus_test {
namespace {

using Use = BaselineModule::Use;

// Runs everything; returns how often control changed copies.
uint64_t run_corpus(Use use) {
  corpus_raise = raise_in_context;
  Scratch scratch;
  uint64_t transfers = 0;
  for (const CorpusFile& file : load_corpus()) {
    CodeMachine machine;
    BaselineModule module(machine, file.module, use);
    auto address = [&](MethodId m) { return module.address_of(m); };
    for (const CorpusRun& run : file.runs) {
      scratch.fill();
      auto ran = module.run(run.method, run.arguments(scratch, address));
      EXPECT_EQ("", run.complaint({ran.bits, ran.trap}, scratch));
    }
    transfers += module.transfers();
  }
  return transfers;
}

TEST(BaselineCorpus, plain_copies_answer_as_they_must) { EXPECT_EQ(run_corpus(Use::kPlain), 0u); }

TEST(BaselineCorpus, instrumented_copies_answer_as_they_must) {
  EXPECT_EQ(run_corpus(Use::kInstrumented), 0u);
}

TEST(BaselineCorpus, changing_copies_at_every_loop_header_changes_no_answer) {
  EXPECT_GT(run_corpus(Use::kToAndFro), 1000u);
}

TEST(BaselineCorpus, instrumented_copies_count_what_the_interpreter_counts) {
  corpus_raise = raise_in_context;
  Scratch scratch;
  int compared = 0;
  for (const CorpusFile& file : load_corpus()) {
    CodeMachine machine;
    BaselineModule module(machine, file.module, Use::kInstrumented);
    jit::Interpreter interpreter(file.module, interpret_options(scratch));
    auto address = [&](MethodId m) { return module.address_of(m); };
    for (const CorpusRun& run : file.runs) {
      // The number of frames that fit on the stack differs between the two.
      if (run.expected.trap == TrapCode::kStackExhausted) continue;
      scratch.fill();
      module.run(run.method, run.arguments(scratch, address));
      scratch.fill();
      interpret(interpreter, run.method, run.arguments(scratch, jit::Interpreter::address_of));
    }
    for (uint32_t i = 0; i < file.module.functions.size(); ++i) {
      auto expected = interpreter.site_counts(MethodId(i));
      for (size_t s = 0; s < module.counts(i).size() && !expected.empty(); ++s, ++compared) {
        ASSERT_EQ(module.counts(i)[s], expected[s])
            << file.name << " @" << file.module.functions[i].name << " block site " << s + 1;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace uptier::test::baseline_corpus_test
