// upf/packed.h: appends records and packed parts of a profile file to bytes.
#pragma once

#include "profile/upf/format.h"

namespace uptier::profile {

// What packing may leave at most to be worth unpacking, in eighths; see upf/format.h.
inline constexpr size_t kHotShare = 2;
inline constexpr size_t kColdShare = 7;

// Appends "stored, raw, bytes": with zstd where the bytes are many and shrink enough.
void append_packed(ByteSpan raw, size_t share, Bytes& out);

// Appends a record of ours: header, payload, padding, both checksums.
void append_record(UpfKind kind, uint32_t sequence, ByteSpan payload, Bytes& out,
                   uint16_t version = 0);

// Compresses as ZSTD_compress does, with a small window. Returns its code.
size_t compress(ByteSpan raw, std::span<std::byte> out);
// Makes a record of what lies from `start` on in `out`: room for its header, then the payload.
void finish_record(UpfKind kind, uint32_t sequence, uint16_t version, size_t start, Bytes& out);

}  // namespace uptier::profile
