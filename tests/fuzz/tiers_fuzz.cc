// Tiers: random terminating programs give the reference interpreter's answers in every mode, with
// the same memory and the same calls of host functions. A program is called often enough to be
// sampled, flushed, compiled and entered in the middle of its loops.
#include <optional>

#include "jit/ir/print.h"
#include "tests/fuzz/mode_options.h"
#include "tests/support/indirect_calls.h"
#include "tests/support/random_ir.h"
#include "tools/ir_host.h"

namespace uptier::fuzz {
namespace {

using test::Answer;

// Calls per function: few, so that most runs are quick, or many, for programs that read their own
// counts.
constexpr int kFewCalls = 12, kManyCalls = 80;

struct Mode {
  const char* options[7];  // NAME=VALUE
  bool evicts = false;     // there is little room for code: uses many functions, and calls may find
                           // no room
};
constexpr Mode kModes[] = {
    {{"tier=baseline"}},
    {{"tier=instrumented"}},
    {{"tier=optimized"}},
    {{"policy=always", "flush_first=1", "workers=0"}},
    {{"policy=always", "flush_first=2", "workers=0", "interval=3"}},
    {{"policy=never", "stress=osr=all", "workers=0"}},
    {{"policy=never", "stress=osr=random:0.3:7", "interval=5", "workers=0"}},
    {{"policy=never", "stress=copy=every:2", "workers=0"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=flip=every:2"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=guard=all,osr=every:3"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=guard=random:0.2:3,flip=every:3"}},
    {{"policy=always", "flush_first=1", "workers=0", "deopt_cold=on", "cold_samples=1"}},
    {{"policy=always", "flush_first=1", "workers=0", "osr_out=on", "stress=guard=random:0.1:5",
      "deopt_cold=on"}},
    {{"policy=always", "flush_first=1", "workers=0", "inlining=off", "stress=osr=every:2"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=values=all"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=values=all,guard=random:0.2:3"}},
    {{"tier=optimized", "workers=0", "stress=values=all"}},
    {{"policy=never", "workers=0", "stress=values=all,osr=every:2"}},
    {{"policy=always", "flush_first=1", "workers=0", "counters=scalable"}},
    {{"policy=always", "flush_first=2", "workers=0", "deopt_cold=on", "cold_samples=1",
      "exit_limit=2"}},
    {{"tier=optimized", "stress=osr_out=all", "pack_code=off"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=osr_out=random:0.5:3,osr=every:2"}},
    {{"policy=always", "flush_first=4", "workers=0", "inlining=off", "loop_flush_first=2",
      "measure_rates=off"}},
    // Optimizing always pays, but only after the targets of calls are known.
    {{"flush_first=20", "workers=0", "interval=1", "adaptive=off", "measure_rates=off",
      "compile_ns=1", "baseline_ns=1000"}},
    {{"policy=always", "flush_first=1", "interval=1"}},
    {{"policy=always", "flush_first=40", "workers=0", "interval=1", "measure_rates=off"}},
    {{"policy=always", "flush_first=1", "stress=guard=random:0.1:9,osr=every:3,flip=every:5"}},
    {{"tier=optimized", "stress=guard=random:0.3:11"}},
    {{"policy=always", "flush_first=1", "workers=0",
      "stress=values=all,osr=every:2,osr_out=every:2"}},
    {{"policy=always", "flush_first=1", "workers=0", "stress=relay=all"}},
    {{"policy=always", "flush_first=1", "stress=relay=all,osr=every:3,copy=every:5"}},
    {{"policy=always", "flush_first=1", "workers=0",
      "stress=relay=every:2,guard=random:0.2:3,osr_out=every:3,values=every:3"}},
    {{"tier=optimized", "stress=relay=all,osr_out=random:0.3:5"}},
    {{"policy=never", "interval=3", "workers=0", "stress=relay=all,copy=every:3"}},
    {{"policy=always", "flush_first=1", "workers=0", "optimized_interval=1", "interval=1",
      "stress=osr=every:2,osr_out=all"}},
    {{"policy=always", "flush_first=1", "workers=0", "optimized_interval=1", "drift_samples=4",
      "interval=1"}},
    {{"policy=always", "flush_first=1", "workers=0", "code_budget=65536"}, true},
    {{"policy=always", "flush_first=1", "code_budget=65536", "stress=osr=every:2,copy=every:3"},
     true},
    {{"policy=always", "flush_first=2", "workers=0", "code_budget=65536", "interval=2",
      "stress=guard=random:0.2:3,flip=every:3"},
     true},
};

// The effects of a call: its answer, the memory, and the host calls.
struct Seen {
  Answer answer;
  std::string bytes;
  uint64_t notes;
};

class Oracle {
 public:
  Oracle(const jit::Module& module, test::Scratch& scratch)
      : module_(module), scratch_(scratch), interpreter_(module, interpret_options(scratch)) {}

  Seen call(MethodId m, std::span<const uint64_t> args) {
    scratch_.fill();
    test::corpus_notes = 0;
    Answer a = test::interpret(interpreter_, m, args);
    return {a, scratch_.bytes(), test::corpus_notes};
  }

  // Prints the difference and aborts if there is one.
  void check(const Mode& mode, MethodId m, const Seen& want, const Outcome& got) {
    Type result = module_.functions[m.index()].signature().result;
    bool same = got.trap.code == want.answer.trap && test::corpus_notes == want.notes &&
                scratch_.bytes() == want.bytes &&
                (want.answer.trap != TrapCode::kNone ||
                 test::same_value(result, got.bits, want.answer.bits));
    if (!same) {
      std::fprintf(stderr, "%s", jit::to_text(module_).c_str());
      std::fprintf(stderr, "f%u in mode", m.index());
      for (const char* o : mode.options) std::fprintf(stderr, " %s", o == nullptr ? "" : o);
      std::fprintf(stderr, ": %s, not %s\n",
                   test::answer_text(result, {got.bits, got.trap.code}).c_str(),
                   test::answer_text(result, want.answer).c_str());
    }
    UPTIER_FUZZ_CHECK(same);
  }

 private:
  const jit::Module& module_;
  test::Scratch& scratch_;
  jit::Interpreter interpreter_;
};

void raise(TrapCode code) { Runtime::raise(code); }

// `indirect`: percentage of calls that know their callee by its address only.
void compare(const jit::Module& module, const Mode& mode, uint64_t seed, unsigned indirect,
             test::Scratch& scratch) {
  jit::Module given = module;
  std::unique_ptr<tools::IrHost> host;  // outlives the runtime, whose workers may be using it
  auto runtime = Runtime::create(options_of(mode.options));
  UPTIER_FUZZ_CHECK(runtime.ok());
  auto added = tools::IrHost::add(**runtime, given);
  UPTIER_FUZZ_CHECK(added.ok());
  host = std::move(*added);
  test::Random random(seed);
  auto address = [&](MethodId m) { return (*runtime)->entry_address(host->method(m)); };
  for (jit::Function& f : given.functions) {
    make_calls_indirect(f, random, indirect, address);
    test::place_addresses(f, module.functions.size(), address);
  }
  ThreadScope attached(**runtime);
  Oracle oracle(module, scratch);
  int calls = random.chance(15) ? kManyCalls : kFewCalls;
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int n = 0; n < calls; ++n) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      Seen want = oracle.call(MethodId(f), args);
      scratch.fill();
      test::corpus_notes = 0;
      Outcome got = (*runtime)->invoke(host->method(MethodId(f)), args);
      // Frames that wait for a call hold their code, so there may be no room for more.
      if (mode.evicts && got.trap.code == TrapCode::kNoCode) continue;
      oracle.check(mode, MethodId(f), want, got);
    }
  }
}

}  // namespace

std::vector<std::string> seeds() { return {"a program is a number"}; }

void feed(const std::string& input) {
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  test::corpus_raise = raise;
  test::Random random(seed);
  const Mode& mode = kModes[random.below(std::size(kModes))];
  test::RandomOptions options{.functions = 1 + static_cast<int>(random.below(mode.evicts ? 16 : 4)),
                              .statements = 10 + static_cast<int>(random.below(60)),
                              .variables = 3 + static_cast<int>(random.below(30)),
                              .depth = 1 + static_cast<int>(random.below(4)),
                              .traps = random.chance(60),
                              .hosts = random.chance(60),
                              .guards = random.chance(40),
                              .odd = random.chance(60),
                              .counts = random.chance(40),
                              .wide = random.chance(70)};
  jit::Module module = test::random_module(random.next(), options);
  test::Scratch scratch;
  unsigned indirect = random.chance(30) ? 50 : 0;
  compare(module, mode, random.next(), indirect, scratch);
}

}  // namespace uptier::fuzz
