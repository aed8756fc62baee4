// The tier matrix on IR: every run of tests/ir gives the same answer through the runtime in every
// mode, and exhaustive counts equal the reference interpreter's, block for block.
#include <gtest/gtest.h>

#include "tests/support/ir_corpus.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::ir_tiers_test {
namespace {

struct Mode {
  const char* name;
  std::vector<std::pair<const char*, const char*>> options;
  const char* stress = nullptr;  // the stress count must not be 0 over the whole corpus
};

std::vector<Mode> modes() {
  std::pair<const char*, const char*> never{"policy", "never"};
  return {
      {"baseline_plain", {{"tier", "baseline"}}},
      {"sampled_1", {never, {"interval", "1"}}},
      {"sampled_7", {never, {"interval", "7"}, {"workers", "0"}}},
      {"sampled_16", {never, {"interval", "16"}, {"workers", "0"}}},
      {"sampled_1000", {never, {"interval", "1000"}}},
      {"exact_flush_each_call",
       {never, {"gap", "exact"}, {"interval", "1"}, {"flush_first", "1"}, {"flush_growth", "1"}}},
      {"optimized", {{"tier", "optimized"}}},
      {"automatic", {}},
      {"always", {{"policy", "always"}, {"workers", "0"}, {"interval", "2"}, {"flush_first", "2"}}},
      {"osr_everywhere", {never, {"stress", "osr=all"}}, "osr"},
      {"values_guessed",
       {{"policy", "always"}, {"flush_first", "1"}, {"workers", "0"}, {"stress", "values=all"}},
       "values"},
      {"values_guessed_in_loops",
       {never, {"workers", "0"}, {"stress", "values=all,osr=all"}},
       "osr"},
      {"osr_second_arrivals", {never, {"stress", "osr=every:2"}}, "osr"},
      {"copies_to_and_fro", {never, {"stress", "copy=every:2"}}, "copy"},
      {"versions_to_and_fro",
       {{"policy", "always"}, {"flush_first", "1"}, {"workers", "0"}, {"stress", "flip=every:2"}},
       "flip"},
      {"guards_fail", {{"tier", "optimized"}, {"stress", "guard=every:3"}}, "guard"},
      {"all_guards_fail",
       {{"policy", "always"},
        {"workers", "0"},
        {"interval", "2"},
        {"flush_first", "2"},
        {"stress", "guard=all"}},
       "guard"},
      {"each_guard_fails_once",
       {{"policy", "always"},
        {"workers", "0"},
        {"interval", "2"},
        {"flush_first", "2"},
        {"stress", "guard=once"}},
       "guard"},
      {"each_loop_is_entered_once_each_guard_fails_once",
       {never, {"stress", "osr=once,guard=once"}},
       "osr"},
      {"guards_fail_behind_osr", {never, {"stress", "osr=all,guard=every:2"}}, "guard"},
      {"guards_fail_as_versions_change",
       {{"policy", "always"},
        {"flush_first", "1"},
        {"workers", "0"},
        {"deopt_cold", "on"},
        {"cold_samples", "1"},
        {"stress", "flip=every:2,guard=every:5,copy=every:3"}},
       "guard"},
      {"cold_blocks",
       {{"policy", "always"},
        {"workers", "0"},
        {"interval", "2"},
        {"flush_first", "2"},
        {"deopt_cold", "on"},
        {"cold_samples", "1"}}},
      {"frames_move_at_every_header",
       {{"tier", "optimized"}, {"stress", "osr_out=all"}},
       "osr_out"},
      {"frames_move_as_versions_change",
       {{"policy", "always"},
        {"flush_first", "1"},
        {"workers", "0"},
        {"stress", "osr_out=every:2,osr=every:2,guard=every:7"}},
       "osr_out"},
      {"code_moves",
       {{"policy", "always"}, {"flush_first", "1"}, {"workers", "0"}, {"stress", "relay=all"}},
       "relay"},
      {"code_moves_in_baseline", {never, {"stress", "relay=all,copy=every:3"}}, "relay"},
      {"code_and_frames_move",
       {{"policy", "always"},
        {"flush_first", "1"},
        {"workers", "0"},
        {"stress", "relay=every:2,osr_out=every:2,osr=every:2,guard=every:7"}},
       "relay"},
      {"late_compiler",
       {{"policy", "always"}, {"flush_first", "1"}, {"stress", "delay=random:0.05:1"}},
       "delay"},
  };
}

Options options_of(const Mode& mode) {
  Options o;
  for (auto [name, value] : mode.options) {
    Status s = o.set(name, value);
    EXPECT_TRUE(s.ok()) << s.error().message;
  }
  return o;
}

void raise_in_runtime(TrapCode code) { Runtime::raise(code); }

class IrTiers : public testing::TestWithParam<Mode> {};

TEST_P(IrTiers, every_run_answers_the_same) {
  corpus_raise = raise_in_runtime;
  Scratch scratch;
  uint64_t forced = 0;
  for (const CorpusFile& file : load_corpus()) {
    IrRuntime r(file.module, options_of(GetParam()));
    ThreadScope scope(*r.runtime);
    auto address = [&](MethodId m) {
      return reinterpret_cast<uint64_t>(r.runtime->entry_address(r.host->method(m)));
    };
    for (int round = 0; round < 3; ++round) {
      for (const CorpusRun& run : file.runs) {
        scratch.fill();
        Outcome o = r.runtime->invoke(r.host->method(run.method), run.arguments(scratch, address));
        ASSERT_EQ("", run.complaint({o.bits, o.trap.code}, scratch)) << "round " << round;
      }
    }
    Report report = r.runtime->report();
    EXPECT_EQ(report.losses.compiles_failed, 0u);
    if (GetParam().stress != nullptr) forced += stress_count(report, GetParam().stress).forced;
  }
  if (GetParam().stress != nullptr) { EXPECT_GT(forced, 0u); }
}

INSTANTIATE_TEST_SUITE_P(Corpus, IrTiers, testing::ValuesIn(modes()),
                         [](const auto& info) { return std::string(info.param.name); });

// Compares the runtime's exhaustive counts after some runs with the interpreter's.
void expect_equal_counts(const IrRuntime& r, const jit::Interpreter& oracle,
                         const std::string& what) {
  for (uint32_t i = 0; i < r.module.functions.size(); ++i) {
    const jit::Function& f = r.module.functions[i];
    auto sites = oracle.site_counts(MethodId(i));
    std::vector<uint64_t> want(f.block_sites);
    for (uint32_t s = 0; s < f.block_sites && s < sites.size(); ++s) want[s] = sites[s];
    std::vector<uint64_t> got = r.counts(f.name);
    got.resize(f.block_sites);
    EXPECT_EQ(got, want) << what << " @" << f.name;
  }
}

TEST(IrCounts, exhaustive_counts_equal_the_interpreter_s_block_for_block) {
  corpus_raise = raise_in_runtime;
  Scratch scratch;
  Options o;
  o.tier = TierMode::kInstrumented;
  size_t compared = 0;
  for (const CorpusFile& file : load_corpus()) {
    IrRuntime r(file.module, o);
    ThreadScope scope(*r.runtime);
    jit::Interpreter oracle(r.module, interpret_options(scratch));
    auto address = [&](MethodId m) {
      return reinterpret_cast<uint64_t>(r.runtime->entry_address(r.host->method(m)));
    };
    for (const CorpusRun& run : file.runs) {
      // The depth at which the stack is exhausted differs between executors, and so do the counts.
      if (run.expected.trap == TrapCode::kStackExhausted) continue;
      scratch.fill();
      interpret(oracle, run.method, run.arguments(scratch, jit::Interpreter::address_of));
      scratch.fill();
      r.runtime->invoke(r.host->method(run.method), run.arguments(scratch, address));
      ++compared;
    }
    r.runtime->flush();
    expect_equal_counts(r, oracle, file.name);
  }
  EXPECT_GT(compared, 200u);
}

}  // namespace
}  // namespace uptier::test::ir_tiers_test
