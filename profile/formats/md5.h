// MD5 (RFC 1321), for LLVM's names of functions: no defence against anybody.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uptier::profile {

std::array<uint8_t, 16> md5(std::string_view text);

// Returns the number by which LLVM's profiles know a function: the first eight bytes of the MD5 of
// its name, as a little-endian number.
uint64_t llvm_guid(std::string_view name);

}  // namespace uptier::profile
