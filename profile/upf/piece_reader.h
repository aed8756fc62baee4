// piece_reader.h: reads pieces of memory as if they were one.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/gather.h"

namespace uptier::profile {

// The pieces must outlive it. Positions are checked by the caller.
class PieceReader {
 public:
  explicit PieceReader(std::span<const Piece> pieces);

  uint64_t size() const { return size_; }
  // Returns a copy of some bytes.
  Bytes read(uint64_t at, uint64_t bytes) const;
  // Returns a hash of some bytes, which are not copied.
  std::array<uint64_t, 2> hash(uint64_t at, uint64_t bytes) const;
  // Returns the XXH3 hash of all of it.
  uint64_t hash64() const;

 private:
  void each(uint64_t at, uint64_t bytes, auto take) const;

  std::span<const Piece> pieces_;
  std::vector<uint64_t> starts_;  // of the pieces
  uint64_t size_ = 0;
};

// The hash of bytes that are in one piece.
std::array<uint64_t, 2> hash_of(ByteSpan bytes);

}  // namespace uptier::profile
