// Interrupts, time limits and fuel through the C API.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_stop_test {
namespace {

using CApiStop = CApi;

std::atomic<bool> g_began{false};
extern "C" int64_t stop_began(int64_t x) {
  g_began = true;
  return x;
}

// Reports that it has begun, and loops forever.
void spin(uptier_builder* b) {
  uptier_value x = uptier_build_param(b, 0);
  uptier_build_call_host(b, "began", reinterpret_cast<uptier_code>(stop_began), signature(1), &x, 1,
                         0);
  uptier_block loop = uptier_build_create_block(b);
  uptier_build_jump(b, loop);
  uptier_build_switch_to(b, loop);
  uptier_build_loop_header(b, 0, nullptr, 0);
  uptier_build_jump(b, loop);
  uptier_build_seal(b, loop);
}

TEST_F(CApiStop, another_thread_is_interrupted) {
  uptier_method m = add("spin", keep({spin}), signature(1));
  std::atomic<uint32_t> number{0};
  g_began = false;
  std::thread runs([&] {
    EXPECT_EQ(uptier_runtime_attach(runtime_, nullptr), UPTIER_OK);
    number = uptier_runtime_thread_number(runtime_);
    EXPECT_EQ(invoke(m, {1}), UPTIER_TRAPPED);
    EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_INTERRUPTED});
    uptier_runtime_detach(runtime_);
  });
  while (!g_began) std::this_thread::sleep_for(std::chrono::microseconds(50));
  EXPECT_EQ(uptier_runtime_interrupt(runtime_, number, nullptr), UPTIER_OK);
  runs.join();
  EXPECT_EQ(uptier_runtime_interrupt(runtime_, number, nullptr), UPTIER_NOT_FOUND);
  EXPECT_EQ(uptier_runtime_interrupt(runtime_, 0, nullptr), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_interrupt(nullptr, 0, nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_thread_number(runtime_), 0u);
  EXPECT_EQ(uptier_interrupted(), 0);
}

TEST_F(CApiStop, limits_end_it) {
  uptier_method m = add("spin", keep({spin}), signature(1));
  uint64_t arg = 1;
  EXPECT_EQ(uptier_runtime_invoke_limited(runtime_, m, &arg, 1, 2'000'000, 0, &outcome_, &error_),
            UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_INTERRUPTED});
  EXPECT_EQ(uptier_runtime_invoke_limited(runtime_, m, &arg, 1, 0, 5, &outcome_, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_fuel_left(runtime_), UINT64_MAX);
  create({{"fuel", "1000000"}});
  m = add("spin", keep({spin}), signature(1));
  EXPECT_EQ(invoke(m, {1}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_OUT_OF_FUEL});
  EXPECT_EQ(uptier_runtime_invoke_limited(runtime_, m, &arg, 1, 0, 5, &outcome_, &error_),
            UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_OUT_OF_FUEL});
}

}  // namespace
}  // namespace uptier::test::c_api_stop_test
