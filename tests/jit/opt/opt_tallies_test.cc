// Tallies that optimized code keeps of itself, compared with the interpreter: the count of a site
// with no share but 1 is exact, and the code still gives the same answers.
#include "jit/opt/passes.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::opt_tallies_test {
namespace {

class Words final : public jit::TallySource {
 public:
  std::optional<uint32_t> take(uint32_t count) override {
    if (count > left) return std::nullopt;
    left -= count;
    uint32_t first = next_;
    next_ += count;
    taken += count;
    return first;
  }
  void give_unused(uint32_t, uint32_t count) noexcept override { given_back += count; }

  uint32_t left = sampler::kTallyWords;
  uint32_t taken = 0, given_back = 0;

 private:
  uint32_t next_ = 0;
};

// Makes modules tally in the words of a source, for a scope.
class Counting {
 public:
  explicit Counting(Words& words) { OptimizedModule::tallies = &words; }
  ~Counting() { OptimizedModule::tallies = nullptr; }
};

struct Seen {
  uint64_t exact = 0, shared = 0, in_loops = 0;
};

// Compares the sites of a body whose counts are exact. Returns the first difference, or "".
std::string compare(const jit::Function& f, const jit::TallyTable& table,
                    const sampler::ThreadContext& context, const std::vector<uint64_t>& want,
                    Seen& seen) {
  auto& c = const_cast<sampler::ThreadContext&>(context);
  std::vector<double> got(f.block_sites);
  std::vector<bool> exact(f.block_sites, true), any(f.block_sites), looped(f.block_sites);
  for (const jit::TallyShare& s : table.shares) {
    const jit::TallyWord& w = table.words[s.word];
    if (c.tally(w.at) % w.step != 0) return f.name + ": a part of a step";
    got[s.site - 1] += s.per * static_cast<double>(c.tally(w.at) / w.step);
    any[s.site - 1] = true;
    if (!s.exact) exact[s.site - 1] = false;
    if (s.word != jit::TallyTable::kEntries) looped[s.site - 1] = true;
  }
  for (uint32_t b = 0; b < f.block_sites; ++b) {
    if (!any[b]) continue;
    exact[b] ? ++seen.exact : ++seen.shared;
    if (!exact[b]) continue;
    seen.in_loops += looped[b] && want[b] > 1;
    if (got[b] == static_cast<double>(want[b])) continue;
    return f.name + " block " + std::to_string(b + 1) + ": " + std::to_string(got[b]) + ", not " +
           std::to_string(want[b]);
  }
  return "";
}

// Runs a random module. Returns the first difference, or "".
std::string compare_random(uint64_t seed, const RandomOptions& options, Seen& seen) {
  jit::Module module = random_module(seed, options);
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  CodeMachine machine;
  Words words;
  Counting counting(words);
  Random random(seed ^ 0x7a11e5);
  auto counts = [&](const jit::Function& f) {
    std::vector<uint64_t> c(f.block_sites);
    for (uint64_t& n : c) n = random.next() >> random.below(64);
    return c;
  };
  OptimizedModule code(machine, module, seed % 2 == 0 ? OptimizedModule::Counts(counts) : nullptr);
  bool traps = false;
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    std::vector<uint64_t> args = random_arguments(s, scratch, random);
    bool trapped = false;
    bool same = answers_alike(machine, code, oracle, MethodId(f), s, args, scratch, trapped);
    traps |= trapped;
    if (!same) return "seed " + std::to_string(seed) + " f" + std::to_string(f) + ": answer";
  }
  if (traps) return "";  // a frame that traps loses the pending rounds of its loop
  for (uint32_t m = 0; m < module.functions.size(); ++m) {
    const jit::Function& f = module.functions[m];
    auto ran = oracle.site_counts(MethodId(m));
    std::vector<uint64_t> want(ran.begin(), ran.end());
    want.resize(f.block_sites);
    const jit::TallyTable& table = code.codes()[m]->tables().tallies;
    std::string d = compare(f, table, machine.thread.context(), want, seen);
    if (!d.empty()) return "seed " + std::to_string(seed) + " " + d;
  }
  return "";
}

TEST(OptTallies, random_programs_count_exactly_what_runs_once_a_round) {
  corpus_raise = raise_in_context;
  Seen seen;
  for (uint64_t seed = 1; seed <= 700; ++seed) { ASSERT_EQ("", compare_random(seed, {}, seen)); }
  EXPECT_GT(seen.exact, 3000u);
  EXPECT_GT(seen.shared, 500u);
  EXPECT_GT(seen.in_loops, 300u);
}

TEST(OptTallies, programs_of_many_loops_too) {
  corpus_raise = raise_in_context;
  Seen seen;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    ASSERT_EQ(
        "", compare_random(seed + 500'000,
                           {.functions = 2, .statements = 120, .variables = 12, .depth = 6}, seen));
  }
  EXPECT_GT(seen.in_loops, 100u);
}

// One operation replaces all rounds but the last.
TEST(OptTallies, rounds_in_bulk_are_counted) {
  jit::Module module = *jit::parse_module(R"(
func @fill(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.i32 7
  v3 = const.i64 0
  v4 = const.i64 1
  v5 = const.i32 1
  jump b1(v1, v3)
b1(v6: i32, v7: i64):
  store8.i32 v2, v0[v7] traps
  v8 = add.i64 v7, v4
  v9 = sub.i32 v6, v5
  branch v9, b1(v9, v8), b2
b2:
  return v2
}
)");
  Scratch scratch;
  CodeMachine machine;
  Words words;
  Counting counting(words);
  OptimizedModule code(machine, module);
  jit::Function bulk = module.functions[0];
  jit::loop_idiom(bulk, {}, false);
  ASSERT_NE(jit::to_text(bulk).find("fill"), std::string::npos);
  jit::Interpreter oracle(module, interpret_options(scratch));
  uint64_t calls = 0, rounds = 0;
  Seen seen;
  for (uint64_t n : {1, 20, 500, 1000, 33}) {
    ++calls;
    rounds += n;
    bool traps = false;
    const jit::Function& f = module.functions[0];
    ASSERT_TRUE(answers_alike(machine, code, oracle, MethodId(0), f.signature(),
                              {scratch.base(), n}, scratch, traps));
    EXPECT_EQ("", compare(f, code.codes()[0]->tables().tallies, machine.thread.context(),
                          {calls, rounds, calls}, seen));
  }
  EXPECT_GE(seen.exact, 2 * calls);
}

TEST(OptTallies, without_words_code_counts_nothing_and_is_as_it_was) {
  corpus_raise = raise_in_context;
  jit::Module module = random_module(7, {});
  CodeMachine machine, plain;
  Words none;
  none.left = 0;
  OptimizedModule as_it_was(plain, module);
  Counting counting(none);
  OptimizedModule code(machine, module);
  for (size_t m = 0; m < module.functions.size(); ++m) {
    EXPECT_TRUE(code.codes()[m]->tables().tallies.words.empty());
    EXPECT_EQ(code.codes()[m]->size(), as_it_was.codes()[m]->size());
  }
}

TEST(OptTallies, code_that_cannot_be_made_gives_its_words_back) {
  jit::Module module = random_module(7, {});
  CodeMachine machine;
  OptimizedModule code(machine, module);
  Words words;
  machine.space->fail_allocation(1);
  auto refused = jit::compile_optimized(
      {module.functions[0], MethodId(0), code.helpers(), code.resolver(), *machine.space},
      {.tallies = {&words, true}});
  ASSERT_FALSE(refused.ok());
  EXPECT_GT(words.taken, 0u);
  EXPECT_EQ(words.given_back, words.taken);
}

}  // namespace
}  // namespace uptier::test::opt_tallies_test
