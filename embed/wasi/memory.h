// memory.h: the guest's linear memory as a host function sees it during one call.
//
// A guest pointer is a number until `contains` has accepted the whole range, so every access goes
// through an accessor that checks first, without overflow, and touches nothing when it refuses.
// Values are little-endian and may be unaligned.
#pragma once

#include <cstdint>
#include <cstring>

namespace uptier::wasm {

// Borrows the bytes [base, base + size) for one call. The range must stay mapped and writable
// until the call returns; base may be null when size is 0. Thread: any; the bytes are the guest's
// own, so a guest that shares its memory between threads races with itself only.
struct GuestMemory {
  uint8_t* base = nullptr;
  uint64_t size = 0;

  // Returns whether [address, address + count) lies inside; an empty range may touch the end.
  bool contains(uint64_t address, uint64_t count) const {
    return address <= size && count <= size - address;
  }

  // Returns the host address of an accepted range, or null.
  uint8_t* at(uint64_t address, uint64_t count) const {
    return contains(address, count) ? base + address : nullptr;
  }

  // Copies `count` bytes in or out. Returns false, and copies nothing, when the range is outside.
  bool read(uint64_t address, void* to, uint64_t count) const {
    if (!contains(address, count)) return false;
    if (count != 0) std::memcpy(to, base + address, count);
    return true;
  }
  bool write(uint64_t address, const void* from, uint64_t count) const {
    if (!contains(address, count)) return false;
    if (count != 0) std::memcpy(base + address, from, count);
    return true;
  }

  bool load32(uint64_t address, uint32_t* out) const;
  bool store32(uint64_t address, uint32_t value) const;
  bool store64(uint64_t address, uint64_t value) const;
};

namespace wasi {

// Little-endian fields of the structures that cross the boundary, byte by byte so that neither
// the host's byte order nor its alignment shows.
inline void put16(uint8_t* at, uint16_t v) {
  at[0] = static_cast<uint8_t>(v);
  at[1] = static_cast<uint8_t>(v >> 8);
}
inline void put32(uint8_t* at, uint32_t v) {
  put16(at, static_cast<uint16_t>(v));
  put16(at + 2, static_cast<uint16_t>(v >> 16));
}
inline void put64(uint8_t* at, uint64_t v) {
  put32(at, static_cast<uint32_t>(v));
  put32(at + 4, static_cast<uint32_t>(v >> 32));
}
inline uint16_t get16(const uint8_t* at) { return static_cast<uint16_t>(at[0] | (at[1] << 8)); }
inline uint32_t get32(const uint8_t* at) {
  return get16(at) | (static_cast<uint32_t>(get16(at + 2)) << 16);
}
inline uint64_t get64(const uint8_t* at) {
  return get32(at) | (static_cast<uint64_t>(get32(at + 4)) << 32);
}

}  // namespace wasi

inline bool GuestMemory::load32(uint64_t address, uint32_t* out) const {
  if (!contains(address, 4)) return false;
  *out = wasi::get32(base + address);
  return true;
}
inline bool GuestMemory::store32(uint64_t address, uint32_t value) const {
  if (!contains(address, 4)) return false;
  wasi::put32(base + address, value);
  return true;
}
inline bool GuestMemory::store64(uint64_t address, uint64_t value) const {
  if (!contains(address, 8)) return false;
  wasi::put64(base + address, value);
  return true;
}

}  // namespace uptier::wasm
