// hash.h: the hash that names modules and adapters across processes.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace uptier::wasm {

// Returns a 64-bit hash of the bytes: FNV-1a over 8-byte words, mixed at the end. Stable across
// processes and machines of little-endian order; not for adversaries.
inline uint64_t hash_bytes(std::span<const uint8_t> bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t h = 0xcbf29ce484222325 ^ bytes.size();
  auto add = [&h](uint64_t word) {
    h = (h ^ word) * kPrime;
    h ^= h >> 32;  // a multiplication alone moves nothing from high bits to low ones
  };
  uint64_t word = 0;
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    std::memcpy(&word, bytes.data() + at, 8);
    add(word);
  }
  if (whole == bytes.size()) return h;
  word = 0;
  std::memcpy(&word, bytes.data() + whole, bytes.size() - whole);
  add(word);
  return h;
}

}  // namespace uptier::wasm
