// fuel: how many calls and iterations a thread's innermost invoke may still run.
//
// `t_fuel` is initial-exec TLS, so compiled code decrements it with one instruction, at a constant
// offset from fs:0. Below 0, the fuel is used up. Without a limit, it starts so large that it never
// runs out.
//
//   Thread: its own thread only.
#pragma once

#include <cstdint>

namespace uptier::sampler {

inline constexpr int64_t kFuelWithoutEnd = INT64_MAX;

int64_t fuel() noexcept;
// Sets the fuel, and returns the old value.
int64_t exchange_fuel(int64_t to) noexcept;
// Return the address of the calling thread's fuel, and its offset from fs:0.
int64_t* fuel_word() noexcept;
int32_t fuel_tls_offset() noexcept;

}  // namespace uptier::sampler
