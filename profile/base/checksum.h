// checksum.h: the two checksums of a record; trace_file.h says which bytes they cover.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdint>

#include "profile/base/bytes.h"

namespace uptier::profile {

// `record` begins with the 32 bytes of its header.
inline uint32_t header_checksum(ByteSpan record) {
  std::array<std::byte, 20> covered;
  std::memcpy(covered.data(), record.data(), 16);
  std::memcpy(covered.data() + 16, record.data() + 20, 4);
  return static_cast<uint32_t>(XXH3_64bits(covered.data(), covered.size()));
}

// `content` is the part of the record after its header.
inline uint64_t content_checksum(uint32_t header_checksum, ByteSpan content) {
  return XXH3_64bits_withSeed(content.data(), content.size(), header_checksum);
}

}  // namespace uptier::profile
