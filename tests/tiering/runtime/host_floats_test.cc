// Results do not depend on the host's floating-point environment, which is restored afterwards.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cfenv>
#include <cmath>

#include "tests/support/workshop.h"

namespace uptier::test::host_floats_test {
namespace {

const Signature kDoubles{{Type::kF64}, Type::kF64};
constexpr unsigned kFtzDaz = 0x8040, kUp = 0x4000, kToZero = 0x6000;
constexpr unsigned kStandard = 0x1f80, kUnmasked = kStandard & ~0x0e80u;  // all but inexact
constexpr unsigned kEnvironments[] = {kStandard | kFtzDaz, kStandard | kUp, kStandard | kToZero,
                                      kUnmasked};

// Sets MXCSR for a scope.
class Environment {
 public:
  explicit Environment(unsigned mxcsr) { _mm_setcsr(mxcsr); }
  ~Environment() { _mm_setcsr(before_); }

 private:
  unsigned before_ = _mm_getcsr();
};

double smallest() { return 0x1p-1022; }

// Bodies whose result changes in another environment, or which end with a signal there; `bits` is
// the argument.
struct Program {
  const char* name;
  double argument;
  void (*body)(FunctionBuilder&);
};
constexpr Program kPrograms[] = {
    {"denormal", 0x1p-1022,
     [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kFMul, b.param(0), b.f64(0.5))); }},
    {"folded denormal", 0,
     [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kFMul, b.f64(0x1p-1022), b.f64(0.5))); }},
    {"third", 3, [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kFDiv, b.f64(1), b.param(0))); }},
    {"folded third", 0,
     [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kFDiv, b.f64(1), b.f64(3))); }},
    {"by zero", 0,
     [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kFDiv, b.f64(1), b.param(0))); }},
    {"overflow", 1e308,
     [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kFMul, b.param(0), b.param(0))); }},
};

std::vector<uint64_t> results(const char* tier) {
  Workshop w(options({{"tier", tier}, {"policy", "always"}, {"interval", "3"}}));
  ThreadScope scope(*w.runtime);
  std::vector<uint64_t> bits;
  for (const Program& p : kPrograms) {
    MethodId m = w.add(p.name, kDoubles, p.body);
    for (int i = 0; i < 200; ++i) {
      Outcome o = w.call(m, {std::bit_cast<uint64_t>(p.argument)});
      EXPECT_TRUE(o.ok()) << p.name;
      if (i == 0 || i == 199) bits.push_back(o.bits);
    }
    w.runtime->flush();
    bits.push_back(w.call(m, {std::bit_cast<uint64_t>(p.argument)}).bits);
  }
  return bits;
}

TEST(HostFloats, change_no_result_in_any_tier_and_are_as_before) {
  const std::vector<uint64_t> expected = results("baseline");
  EXPECT_EQ(expected[0], std::bit_cast<uint64_t>(smallest() / 2));
  for (const char* tier : {"baseline", "instrumented", "optimized", "auto"}) {
    for (unsigned mxcsr : kEnvironments) {
      unsigned after = 0;
      std::vector<uint64_t> got;
      {
        Environment e(mxcsr);
        got = results(tier);  // creates the worker in this environment; it compiles
        after = _mm_getcsr();
      }
      EXPECT_EQ(got, expected) << tier << " " << std::hex << mxcsr;
      EXPECT_EQ(after & ~0x3fu, mxcsr & ~0x3fu) << tier;
    }
  }
}

TEST(HostFloats, flags_and_all_are_as_before_when_invoke_returns_or_traps) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  MethodId third = w.add("third", kDoubles, kPrograms[2].body);
  MethodId traps = w.add("traps", kDoubles, [](FunctionBuilder& b) {
    Value x = b.binary(Opcode::kFDiv, b.f64(1), b.param(0));
    b.trap_if(b.binary(Opcode::kFGt, x, b.f64(0)), TrapCode::kUnreachable);
    b.ret(x);
  });
  const uint64_t three = std::bit_cast<uint64_t>(3.0);
  for (unsigned mxcsr : {kStandard, kStandard | kUp, kUnmasked, kStandard | kFtzDaz | 4u}) {
    unsigned returned = 0, trapped = 0;
    {
      Environment e(mxcsr);
      EXPECT_TRUE(w.call(third, {three}).ok());
      returned = _mm_getcsr();
      _mm_setcsr(mxcsr);
      EXPECT_EQ(w.call(traps, {three}).trap.code, TrapCode::kUnreachable);
      trapped = _mm_getcsr();
    }
    EXPECT_EQ(returned & ~0x3fu, mxcsr & ~0x3fu);
    EXPECT_EQ(trapped, mxcsr);
  }
}

// Flags that the guest raises do not reach the host.
TEST(HostFloats, what_the_guest_raises_is_not_seen_by_the_host) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  MethodId inverse = w.add("inverse", kDoubles, kPrograms[4].body);
  w.call(inverse, {0});  // compiles it
  feclearexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(w.call(inverse, {0}).bits, std::bit_cast<uint64_t>(HUGE_VAL));
  EXPECT_EQ(fetestexcept(FE_DIVBYZERO), 0);
}

TEST(HostFloats, host_functions_and_interpreters_see_the_guests) {
  static unsigned seen;
  uint64_t (*look)(uint64_t) = [](uint64_t x) {
    seen = _mm_getcsr() & ~0x3fu;
    return x;
  };
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  MethodId m = w.add("outer", kOne, [=](FunctionBuilder& b) {
    b.ret(b.call_host(host_function("look", look), {b.param(0)}));
  });
  MethodInfo interpreted{{1, 1000}, "interpreted", kOne};
  interpreted.host_entry = reinterpret_cast<const void*>(look);
  MethodId h = *w.runtime->add_method(w, interpreted);
  for (MethodId called : {m, h}) {
    seen = 0;
    {
      Environment e(kStandard | kUp);
      EXPECT_EQ(w.call(called, {7}).bits, 7u);
    }
    EXPECT_EQ(seen, kStandard);
  }
}

}  // namespace
}  // namespace uptier::test::host_floats_test
