// upf/packed.h: appends records and packed parts of a profile file to bytes.
#pragma once

#include "profile/upf/format.h"

namespace uptier::profile {

// The largest size after packing that makes packing worthwhile, in eighths; see upf/format.h.
inline constexpr size_t kHotShare = 2;
inline constexpr size_t kColdShare = 7;

// Appends "stored, raw, bytes": with zstd if there are many bytes and they shrink enough.
void append_packed(ByteSpan raw, size_t share, Bytes& out);

// Appends one of our records: header, payload, padding, both checksums.
void append_record(UpfKind kind, uint32_t sequence, ByteSpan payload, Bytes& out,
                   uint16_t version = 0);

// Compresses like ZSTD_compress, with a small window. Returns its result code.
size_t compress(ByteSpan raw, std::span<std::byte> out);
// Turns the bytes of `out` from `start` on into a record: room for its header, then the payload.
void finish_record(UpfKind kind, uint32_t sequence, uint16_t version, size_t start, Bytes& out);

}  // namespace uptier::profile
