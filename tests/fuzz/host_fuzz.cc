// Host: random programs that start in a host's interpreter give the reference interpreter's
// answers, wherever their frames move: into compiled code at a loop header, and back to the
// interpreter at a failed guard.
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "tests/fuzz/mode_options.h"
#include "tests/support/interpreted_host.h"
#include "tests/support/random_ir.h"

namespace uptier::fuzz {
namespace {

using test::InterpretedHost;

struct Mode {
  const char* options[7];  // NAME=VALUE
  bool always_ask;         // every header asks for compiled code
};
constexpr Mode kModes[] = {
    {{"policy=always", "flush_first=1", "loop_flush_first=1", "workers=0"}, true},
    {{"policy=always", "flush_first=2", "loop_flush_first=4", "workers=0", "interval=3"}, false},
    {{"policy=never", "flush_first=1", "loop_flush_first=1", "workers=0"}, true},
    {{"policy=always", "flush_first=1000", "loop_flush_first=1", "workers=0"}, true},
    {{"policy=always", "flush_first=1", "loop_flush_first=1", "workers=0", "stress=guard=all",
      "exit_limit=16777216"},
     true},
    {{"policy=always", "flush_first=1", "loop_flush_first=1", "workers=0",
      "stress=guard=random:0.3:7,osr=every:3"},
     true},
    {{"policy=always", "flush_first=2", "loop_flush_first=2", "workers=0",
      "stress=guard=every:2,flip=every:3,copy=every:2"},
     true},
    {{"policy=never", "workers=0", "flush_first=1", "loop_flush_first=1",
      "stress=copy=every:2,osr=every:2"},
     true},
    {{"policy=always", "flush_first=1", "workers=0", "loop_flush_first=1",
      "stress=values=all,guard=random:0.2:3", "exit_limit_loop=2"},
     true},
    {{"policy=always", "flush_first=1", "loop_flush_first=2", "stress=guard=random:0.2:5"}, true},
    {{"policy=always", "flush_first=1", "loop_flush_first=1", "workers=0",
      "stress=osr_out=every:2,guard=every:5", "deopt_cold=on"},
     true},
    {{"policy=always", "flush_first=1", "loop_flush_first=1", "workers=0", "exit_limit=1",
      "exit_limit_loop=1", "exit_retries=0"},
     true},
    {{"tier=optimized", "stress=guard=random:0.3:11"}, true},
    {{"policy=always", "flush_first=1", "loop_flush_first=1", "workers=0",
      "stress=relay=all,guard=random:0.2:5"},
     true},
    {{"tier=baseline"}, true},
};

jit::Module make_module(test::Random& random) {
  test::RandomOptions options{.statements = 10 + static_cast<int>(random.below(60)),
                              .variables = 3 + static_cast<int>(random.below(20)),
                              .depth = 1 + static_cast<int>(random.below(4)),
                              .traps = random.chance(50),
                              .hosts = random.chance(60),
                              .guards = random.chance(80),
                              .odd = random.chance(40),
                              .wide = random.chance(60),
                              .addresses = false};
  jit::Module m;
  std::vector<test::RandomFunction::Made> made;
  size_t count = 1 + random.below(InterpretedHost::kMost);
  for (size_t n = 0; n < count; ++n) {
    Signature s = InterpretedHost::signature(random.chance(70) ? Type::kI64 : Type::kF64);
    std::string name = "f" + std::to_string(n);
    test::RandomFunction f(random, options, made, s, name);
    m.functions.push_back(f.make());
    made.push_back({s, name, f.cost()});
  }
  return m;
}

void compare(const jit::Module& module, const Mode& mode, uint64_t seed) {
  test::Scratch scratch;
  jit::Module given = module, plain = module;
  for (jit::Function& f : given.functions) {
    test::expose(f);
    UPTIER_FUZZ_CHECK(jit::verify(f).ok());
  }
  for (jit::Function& f : plain.functions) test::drop_guards(f);
  jit::Interpreter oracle(plain, test::interpret_options(scratch));

  std::unique_ptr<InterpretedHost> host;  // outlives the runtime, whose workers may be using it
  auto runtime = Runtime::create(options_of(mode.options));
  UPTIER_FUZZ_CHECK(runtime.ok());
  host = std::make_unique<InterpretedHost>(**runtime, given, scratch);
  host->always_ask = mode.always_ask;
  ThreadScope attached(**runtime);
  test::Random random(seed);
  int calls = random.chance(15) ? 40 : 8;
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int n = 0; n < calls; ++n) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      scratch.fill();
      test::corpus_notes = 0;
      test::Answer want = test::interpret(oracle, MethodId(f), args);
      std::string bytes = scratch.bytes();
      uint64_t notes = test::corpus_notes;
      scratch.fill();
      test::corpus_notes = 0;
      Outcome got = (*runtime)->invoke(host->method(f), args);
      bool same = got.trap.code == want.trap && test::corpus_notes == notes &&
                  scratch.bytes() == bytes &&
                  (want.trap != TrapCode::kNone || test::same_value(s.result, got.bits, want.bits));
      if (!same) {
        std::fprintf(stderr, "%sf%u in mode", jit::to_text(given).c_str(), f);
        for (const char* o : mode.options) std::fprintf(stderr, " %s", o == nullptr ? "" : o);
        std::fprintf(stderr, ": %s, not %s; call %d, %llu entered, %llu resumed\n",
                     test::answer_text(s.result, {got.bits, got.trap.code}).c_str(),
                     test::answer_text(s.result, want).c_str(), n,
                     static_cast<unsigned long long>(host->entered),
                     static_cast<unsigned long long>(host->resumed));
      }
      UPTIER_FUZZ_CHECK(same);
    }
  }
}

}  // namespace

std::vector<std::string> seeds() { return {"a program is a number"}; }

void feed(const std::string& input) {
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  test::corpus_raise = [](TrapCode code) { Runtime::raise(code); };
  test::Random random(seed);
  jit::Module module = make_module(random);
  compare(module, kModes[random.below(std::size(kModes))], random.next());
}

}  // namespace uptier::fuzz
