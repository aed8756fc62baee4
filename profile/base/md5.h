// md5.h: MD5 (RFC 1321), by which LLVM names functions. It protects nothing here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uptier::profile {

// Returns the digest of a text.
std::array<uint8_t, 16> md5(std::string_view text);

// Returns LLVM's GUID of a function: the first 8 bytes of the digest of its name, the lowest first.
uint64_t name_guid(std::string_view name);

}  // namespace uptier::profile
