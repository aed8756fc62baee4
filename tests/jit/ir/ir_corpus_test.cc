// The programs of tests/ir in the reference interpreter.
#include "tests/support/ir_corpus.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace uptier::test::ir_corpus_test {
namespace {

TEST(IrCorpus, every_file_verifies) {
  for (const CorpusFile& file : load_corpus()) {
    Status s = jit::verify(file.module);
    EXPECT_TRUE(s.ok()) << file.name << ": " << s.error().message;
  }
}

TEST(IrCorpus, every_run_gives_the_expected_answer_in_the_interpreter) {
  Scratch scratch;
  size_t runs = 0, functions = 0;
  for (const CorpusFile& file : load_corpus()) {
    functions += file.module.functions.size();
    for (const CorpusRun& run : file.runs) {
      scratch.fill();
      jit::Interpreter interpreter(file.module, interpret_options(scratch));
      auto args = run.arguments(scratch, jit::Interpreter::address_of);
      EXPECT_EQ("", run.complaint(interpret(interpreter, run.method, args), scratch));
      ++runs;
    }
  }
  EXPECT_GT(functions, 40u);
  EXPECT_GT(runs, 200u);
}

TEST(IrCorpus, every_file_prints_and_parses_back_to_the_same_text) {
  for (const CorpusFile& file : load_corpus()) {
    std::string text = jit::to_text(file.module);
    auto again = jit::parse_module(text, {file.name, corpus_hosts()});
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(text, jit::to_text(*again));
  }
}

// Every operation of the table appears with every type that its row allows, except operations of
// the plain form, which only the baseline compiles (plain_form_test.cc).
TEST(IrCorpus, covers_every_operation_and_type) {
  std::set<std::pair<Opcode, Type>> seen;
  for (const CorpusFile& file : load_corpus()) {
    for (const jit::Function& f : file.module.functions) {
      for (const jit::Inst& i : f.insts) seen.insert({i.op, i.type});
    }
  }
  for (unsigned op = 0; op < kOpcodeCount; ++op) {
    for (unsigned t = 0; t <= static_cast<unsigned>(Type::kRef); ++t) {
      if (!(info(static_cast<Opcode>(op)).types & (1u << t))) continue;
      if (static_cast<Opcode>(op) == Opcode::kFrameMemory) continue;
      auto pair = std::make_pair(static_cast<Opcode>(op), static_cast<Type>(t));
      EXPECT_TRUE(seen.count(pair)) << info(pair.first).text << "." << type_name(pair.second);
    }
  }
}

}  // namespace
}  // namespace uptier::test::ir_corpus_test
