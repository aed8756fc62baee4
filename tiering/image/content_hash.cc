#include "profile/base/sha256.h"
#include "uptier/image.h"

namespace uptier {

ContentHash content_hash(std::span<const std::span<const uint8_t>> pieces) {
  profile::Sha256Hasher hasher;
  for (std::span<const uint8_t> piece : pieces) hasher.add(std::as_bytes(piece));
  return {hasher.finish()};
}

}  // namespace uptier
