#include "profile/upf/piece_reader.h"

#include <algorithm>
#include <cassert>

#include "profile/base/checksum.h"

namespace uptier::profile {

PieceReader::PieceReader(std::span<const Piece> pieces) : pieces_(pieces) {
  starts_.reserve(pieces.size());
  for (const Piece& p : pieces) {
    starts_.push_back(size_);
    size_ += p.bytes;
  }
}

// Passes the parts of a range to `take`.
void PieceReader::each(uint64_t at, uint64_t bytes, auto take) const {
  assert(at <= size_ && bytes <= size_ - at);
  if (bytes == 0) return;
  auto i = static_cast<size_t>(std::ranges::upper_bound(starts_, at) - starts_.begin()) - 1;
  for (uint64_t skip = at - starts_[i]; bytes > 0; ++i, skip = 0) {
    const uint64_t here = std::min<uint64_t>(pieces_[i].bytes - skip, bytes);
    take(static_cast<const std::byte*>(pieces_[i].data) + skip, here);
    bytes -= here;
  }
}

Bytes PieceReader::read(uint64_t at, uint64_t bytes) const {
  Bytes out;
  out.reserve(bytes);
  each(at, bytes, [&](const std::byte* part, size_t n) { out.insert(out.end(), part, part + n); });
  return out;
}

std::array<uint64_t, 2> PieceReader::hash(uint64_t at, uint64_t bytes) const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  each(at, bytes, [&](const std::byte* part, size_t n) { XXH3_128bits_update(&state, part, n); });
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

uint64_t PieceReader::hash64() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  each(0, size_, [&](const std::byte* part, size_t n) { XXH3_64bits_update(&state, part, n); });
  return XXH3_64bits_digest(&state);
}

std::array<uint64_t, 2> hash_of(ByteSpan bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace uptier::profile
