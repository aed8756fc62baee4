// Random calls of the C API's builder, mostly wrong: the build either fails with a message or makes
// IR that the verifier accepts; nothing aborts. With asserts on, this shows that the checks of the
// C API cover everything that FunctionBuilder takes on trust.
#include <random>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_random_test {
namespace {

using CApiRandom = CApi;

// Picks numbers: mostly small ones, which may be ids; now and then any number.
class Picker {
 public:
  explicit Picker(uint32_t seed) : random_(seed) {}
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint32_t number() { return below(300) == 0 ? static_cast<uint32_t>(random_()) : 1 + below(4); }
  uptier_value value() { return {last_ > 3 && below(4) != 0 ? last_ - below(3) : number()}; }
  uptier_value made(uptier_value v) {
    if (v.id != 0) last_ = v.id;
    return v;
  }
  uptier_block block() { return {below(20) == 0 ? number() : 2 + below(4)}; }
  uptier_variable variable() { return {number()}; }

 private:
  std::mt19937_64 random_;
  uint32_t last_ = 1;
};

void operate(Picker& p, uptier_builder* b) {
  const uptier_opcode op = p.below(UPTIER_OPCODE_COUNT + 1);
  const uptier_address at = {p.value(), p.below(2) ? p.value() : uptier_value{0}, p.number(),
                             p.below(3)};
  switch (p.below(8)) {
    case 0: p.made(uptier_build_unary(b, UPTIER_OP_EQZ + p.below(2) * op, p.value())); return;
    case 1: p.made(uptier_build_binary(b, UPTIER_OP_ADD, p.value(), p.value())); return;
    case 2: p.made(uptier_build_convert(b, UPTIER_OP_WRAP, UPTIER_TYPE_I32, p.value())); return;
    case 3: p.made(uptier_build_select(b, p.value(), p.value(), p.value())); return;
    case 4: p.made(uptier_build_load(b, UPTIER_OP_LOAD, UPTIER_TYPE_I64, at)); return;
    case 5: uptier_build_store(b, UPTIER_OP_STORE, p.value(), at); return;
    case 6: p.made(uptier_build_i32(b, static_cast<int32_t>(p.number()))); return;
    default: p.made(uptier_build_i64(b, p.number())); return;
  }
}

void observe(Picker& p, uptier_builder* b) {
  const uptier_value values[] = {p.value(), p.value()};
  const uptier_variable variables[] = {p.variable(), p.variable()};
  switch (p.below(7)) {
    case 0: uptier_build_loop_header(b, 1, variables, p.below(3)); return;
    case 1: uptier_build_frame_state(b, 2, values, p.below(3)); return;
    case 2: uptier_build_guard(b, p.value(), p.number()); return;
    case 3: uptier_build_probe(b, p.below(13), p.value(), p.below(2) * p.number(), nullptr); return;
    case 4: uptier_build_known_count(b, p.below(8)); return;
    case 5: uptier_build_make_own(b, variables, p.below(3)); return;
    default: uptier_build_trap_if(b, p.value(), p.number()); return;
  }
}

void control(Picker& p, uptier_builder* b) {
  const uptier_block blocks[] = {p.block(), p.block(), p.block()};
  switch (p.below(8)) {
    case 0: uptier_build_jump(b, p.block()); break;
    case 1: uptier_build_branch(b, p.value(), p.block(), p.block()); break;
    case 2: uptier_build_switch(b, p.value(), blocks, p.below(4), p.block()); break;
    case 3: uptier_build_ret(b, p.value()); break;
    case 4: uptier_build_trap(b, p.number()); break;
    case 5: uptier_build_seal(b, p.block()); return;
    case 6: uptier_build_create_block(b); return;
    default: break;
  }
  uptier_build_switch_to(b, p.block());
}

void random_body(uint32_t seed, uptier_builder* b) {
  Picker p(seed);
  for (int i = 0; i < 4; ++i) {
    uptier_build_declare(b, i == 3 ? UPTIER_TYPE_I32 : UPTIER_TYPE_I64);
    uptier_build_create_block(b);
  }
  const uint32_t calls = 1 + p.below(14);
  for (uint32_t i = 0; i < calls; ++i) {
    switch (p.below(6)) {
      case 0: control(p, b); break;
      case 1: observe(p, b); break;
      case 2: p.made(uptier_build_use(b, p.variable())); break;
      case 3: uptier_build_def(b, p.variable(), p.value()); break;
      default: operate(p, b); break;
    }
  }
  if (p.below(2) == 0 && uptier_build_status(b, nullptr) == UPTIER_OK) {
    uptier_build_ret(b, p.value());
  }
}

TEST_F(CApiRandom, calls_never_abort) {
  int good = 0, refused = 0, invalid = 0;
  for (uint32_t seed = 0; seed < 40000; ++seed) {
    SCOPED_TRACE(seed);
    uptier_status said = UPTIER_OK;
    BodyHost host{[&](uptier_builder* b) {
      random_body(seed, b);
      said = uptier_build_status(b, nullptr);
    }};
    uptier_method m = add("random", host, signature(2));
    char text[1];
    uptier_status built = uptier_runtime_ir_text(runtime_, m, text, 1, nullptr, &error_);
    ASSERT_TRUE(said == UPTIER_OK || built == said);
    good += built == UPTIER_OK;
    refused += said != UPTIER_OK;
    invalid += said == UPTIER_OK && built != UPTIER_OK;
    ASSERT_EQ(uptier_runtime_remove_methods(runtime_, &m, 1, &error_), UPTIER_OK);
  }
  // All three outcomes occur, so the numbers are neither too good nor too bad.
  EXPECT_GT(good, 20);
  EXPECT_GT(refused, 1000);
  EXPECT_GT(invalid, 1000);
}

}  // namespace
}  // namespace uptier::test::c_api_random_test
