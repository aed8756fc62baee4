// hash.h: the hash that names modules and adapters across processes.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <span>

namespace uptier::wasm {

// Returns a 64-bit hash of the bytes (XXH3). Stable across processes and machines; not for
// adversaries.
inline uint64_t hash_bytes(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace uptier::wasm
