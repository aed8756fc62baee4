// sha256.h: the cryptographic hash of FIPS 180-4, for content that somebody may choose to collide.
//
// Everything else uses XXH3, which is faster and guards against accidents only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "profile/base/bytes.h"

namespace uptier::profile {

using Sha256 = std::array<uint8_t, 32>;

// Takes content in pieces. Uses the processor's own instructions if it has them (1.5 GB/s or so;
// otherwise a fifth of that).
class Sha256Hasher {
 public:
  void add(ByteSpan bytes);
  // Returns the hash of all that was added; nothing may be added afterwards.
  Sha256 finish();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> open_{};  // the block that is not full
  uint64_t size_ = 0;                 // bytes added
};

// Returns the hash of one piece.
Sha256 sha256(ByteSpan bytes);

// The same without the processor's instructions. For tests.
Sha256 sha256_portable(ByteSpan bytes);

}  // namespace uptier::profile
