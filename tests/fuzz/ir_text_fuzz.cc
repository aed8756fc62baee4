// IR text: accepted text prints and parses to the same text, and verified functions can be run.
#include "jit/frontend/interpret.h"
#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "tests/fuzz/fuzz.h"

namespace uptier::fuzz {

std::vector<std::string> seeds() {
  const std::vector<std::string> texts = {
      "func @fib(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 2\n  v2 = lt_s.i32 v0, v1\n"
      "  branch v2, b1, b2\nb1:\n  return v0\nb2:\n  v3 = const.i32 1\n  v4 = sub.i32 v0, v3\n"
      "  v5 = call @fib(v4) @12\n  v6 = add.i32 v5, v1\n  return v6\n}\n",
      "func @a(ref, f64) -> f64 [sites 2+1, loops 1, cfg 0x12] {\nb0(v0: ref, v1: f64):\n"
      "  probe block 1\n  jump b1(v1)\nb1(v2: f64):\n  loop_header 0 pc=4 [v2]\n  probe block 2\n"
      "  v3 = load.f64 v0+8 traps\n  v4 = fadd.f64 v2, v3\n  store.f64 v4, v0+16\n"
      "  v5 = trunc_s.i32 v4\n  switch v5, [b1(v4), b1(v3)], b2\nb2:\n  return v4\n}\n",
      "func @\"q\\x22\"() {\nb0:\n  v0 = const.f32 nan:0x7fc00001\n  v1 = const.f64 -0x1.8p-3 ; c\n"
      "  v2 = const.ref null\n  v3 = call_indirect.(f32)->i32 v2(v0) may_trap\n"
      "  v4 = call_host @h.(i32)->ref (v3) may_trap\n  frame_state pc=1 depth=0 [v1]\n"
      "  guard v3, overflow\n  trap_if v3, divide_by_zero\n  call #7.() ()\n  trap "
      "unreachable\n}\n",
  };
  for (const std::string& text : texts) UPTIER_FUZZ_CHECK(jit::parse_module(text).ok());
  return texts;
}

void run(const jit::Module& m) {
  jit::Interpreter interpreter(m, {.step_limit = 1000, .depth_limit = 20});
  for (uint32_t i = 0; i < m.functions.size(); ++i) {
    std::vector<uint64_t> args(m.functions[i].signature().params.size(), 3);
    interpreter.run(MethodId(i), args);
  }
}

void feed(const std::string& input) {
  const Result<jit::Module> m = jit::parse_module(input);
  if (!m) {
    UPTIER_FUZZ_CHECK(!m.error().message.empty());
    return;
  }
  const std::string text = jit::to_text(*m);
  const Result<jit::Module> again = jit::parse_module(text);
  UPTIER_FUZZ_CHECK(again.ok());
  UPTIER_FUZZ_CHECK(jit::to_text(*again) == text);
  const bool sound = jit::verify(*m, jit::Stage::kTransformed).ok();
  UPTIER_FUZZ_CHECK(sound == jit::verify(*again, jit::Stage::kTransformed).ok());
  if (sound) run(*m);
}

}  // namespace uptier::fuzz
