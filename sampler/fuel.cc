#include "sampler/fuel.h"

#include <utility>

namespace uptier::sampler {
namespace {

__attribute__((tls_model("initial-exec"))) constinit thread_local int64_t t_fuel = kFuelWithoutEnd;

}  // namespace

int64_t fuel() noexcept { return t_fuel; }

int64_t exchange_fuel(int64_t to) noexcept { return std::exchange(t_fuel, to); }

int64_t* fuel_word() noexcept { return &t_fuel; }

int32_t fuel_tls_offset() noexcept {
  auto* base = static_cast<char*>(__builtin_thread_pointer());
  asm("" : "+r"(base));  // see context_tls_offset()
  return static_cast<int32_t>(reinterpret_cast<char*>(&t_fuel) - base);
}

}  // namespace uptier::sampler
