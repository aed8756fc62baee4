// Traps that the host raises: which call each one ends, and what happens to a trap without an
// invoke.
#include <gtest/gtest.h>

#include "tests/support/workshop.h"

namespace uptier::test::host_traps_test {
namespace {

uint64_t raising(uint64_t detail) {
  Runtime::raise(TrapCode::kHost, detail);
  return 0;
}

TEST(HostTraps, a_trap_of_the_host_names_the_call_that_it_ends) {
  for (const char* tier : {"baseline", "optimized", "auto"}) {
    Workshop w(options({{"tier", tier}, {"workers", "0"}, {"policy", "always"}}));
    ThreadScope scope(*w.runtime);
    HostFunction f{"raising", reinterpret_cast<const void*>(raising), kOne};
    MethodId inner = w.add("inner", kOne, [=](FunctionBuilder& b) {
      b.set_location(40);
      Value x = b.binary(Opcode::kAdd, b.param(0), b.i64(1));
      b.set_location(41);
      Value args[] = {x};
      Value r = b.call_host(f, args, kCallMayTrap);
      b.set_location(42);
      b.ret(r);
    });
    MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
      b.set_location(7);
      Value args[] = {b.param(0)};
      b.ret(b.call(inner, kOne, args));
    });
    for (uint64_t i = 0; i < 300; ++i) {
      Outcome o = w.call(outer, {i});
      ASSERT_EQ(o.trap.code, TrapCode::kHost);
      ASSERT_EQ(o.trap.detail, i + 1);
      ASSERT_EQ(o.trap.method, inner) << tier << " " << i;
      ASSERT_EQ(o.trap.location, 41u) << tier << " " << i;
      CallSite sites[4];
      ASSERT_EQ(w.runtime->trap_stack(sites), 2u) << tier << " " << i;
      ASSERT_EQ(sites[0].method, inner);
      ASSERT_EQ(sites[0].location, 41u);
      ASSERT_EQ(sites[1].method, outer) << tier << " " << i;
      ASSERT_EQ(sites[1].location, 7u);
      ASSERT_EQ(w.runtime->trap_stack(std::span(sites).first(1)), 1u);
    }
    EXPECT_EQ(w.runtime->report().losses.traps_lost, 0u);
  }
}

// A table of methods, some of which are host functions: compiled code cannot tell which it calls.
TEST(HostTraps, an_indirect_call_ends_with_the_trap_of_a_host_function) {
  for (const char* tier : {"baseline", "instrumented", "optimized", "auto"}) {
    Workshop w(options({{"tier", tier}, {"workers", "0"}, {"policy", "always"}}));
    ThreadScope scope(*w.runtime);
    MethodId add = w.adder(1);
    MethodId dispatch = w.add("dispatch", kDispatch, [](FunctionBuilder& b) {
      b.set_location(30);
      Value args[] = {b.param(1)};
      Value r = b.call_indirect(b.param(0), kOne, args, kCallMayTrap);
      b.set_location(31);
      b.ret(b.binary(Opcode::kAdd, r, b.i64(1)));
    });
    MethodId outer = w.add("outer", kDispatch, [=](FunctionBuilder& b) {
      Value args[] = {b.param(0), b.param(1)};
      b.ret(b.call(dispatch, kDispatch, args));
    });
    auto builtin = reinterpret_cast<uint64_t>(&raising);
    for (uint64_t i = 0; i < 40'000; ++i) {
      // Mostly the same entry, so that its call is speculated on and inlined where possible.
      Outcome o = w.call(outer, {i % 50 == 49 ? builtin : w.address(add), i});
      if (i % 50 != 49) {
        ASSERT_EQ(o.bits, i + 2) << tier;
        continue;
      }
      ASSERT_EQ(o.trap.code, TrapCode::kHost) << tier << " " << i;
      ASSERT_EQ(o.trap.detail, i);
      ASSERT_EQ(o.trap.method, dispatch) << tier << " " << i;
      ASSERT_EQ(o.trap.location, 30u);
    }
    EXPECT_EQ(w.runtime->report().losses.traps_lost, 0u);
  }
}

TEST(HostTraps, a_trap_that_nobody_takes_is_counted_and_ends_nothing) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  Runtime::raise(TrapCode::kHost, 1);  // with no invoke below
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 1u);
  HostFunction f{"raising", reinterpret_cast<const void*>(raising), kOne};
  MethodId deaf = w.add("deaf", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.call_host(f, args, 0);
    b.ret(b.param(0));
  });
  MethodId hears = w.add("hears", kOne, [=](FunctionBuilder& b) {
    HostFunction quiet{"quiet", reinterpret_cast<const void*>(+[](uint64_t x) { return x; }), kOne};
    Value args[] = {b.param(0)};
    b.ret(b.call_host(quiet, args, kCallMayTrap));
  });
  EXPECT_EQ(w.call(deaf, {5}).bits, 5u);
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 2u);
  EXPECT_EQ(w.call(hears, {6}).bits, 6u);
}

uint64_t raising_twice(uint64_t detail) {
  Runtime::raise(TrapCode::kHost, detail);
  Runtime::raise(TrapCode::kHost, detail + 1);
  return 0;
}

TEST(HostTraps, of_two_traps_at_once_the_later_one_ends_the_call_and_one_is_counted) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  HostFunction f{"raising_twice", reinterpret_cast<const void*>(raising_twice), kOne};
  MethodId m = w.add("m", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.ret(b.call_host(f, args, kCallMayTrap));
  });
  EXPECT_EQ(w.call(m, {5}).trap.detail, 6u);
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 1u);
}

// The trap names the second method in its slot, and the next trap does not name it again.
TEST(HostTraps, a_trap_names_the_method_that_has_gone_and_only_once) {
  Workshop w(full("3"));
  ThreadScope scope(*w.runtime);
  MethodId dispatch = w.dispatcher();
  HostFunction f{"raising", reinterpret_cast<const void*>(raising), kOne};
  MethodId raises = w.add("raises", kOne, [=](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.ret(b.call_host(f, args, kCallMayTrap));
  });
  w.remove(w.adder(1));
  MethodId m = w.adder(2);
  ASSERT_EQ(m.generation(), 1u);
  uint64_t address = w.address(m);
  w.remove(m);
  Outcome gone = w.call(dispatch, {address, 1});
  EXPECT_EQ(gone.trap.code, TrapCode::kNoCode);
  EXPECT_EQ(gone.trap.method, m);
  EXPECT_EQ(w.call(raises, {1}).trap.method, raises);
}

}  // namespace
}  // namespace uptier::test::host_traps_test
