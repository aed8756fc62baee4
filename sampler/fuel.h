// fuel: how many calls and iterations a thread's innermost invoke may still run.
//
// `t_fuel` is initial-exec TLS, so compiled code counts it down by one instruction with a constant
// displacement from fs:0. Below 0 it is used up. Where nothing limits it, it is so large that no
// thread gets to its end.
//
//   Thread: its own thread only.
#pragma once

#include <cstdint>

namespace uptier::sampler {

inline constexpr int64_t kFuelWithoutEnd = INT64_MAX;

int64_t fuel() noexcept;
// Sets it, and returns what it was.
int64_t exchange_fuel(int64_t to) noexcept;
// Returns the address of the calling thread's, and its displacement from fs:0.
int64_t* fuel_word() noexcept;
int32_t fuel_tls_offset() noexcept;

}  // namespace uptier::sampler
