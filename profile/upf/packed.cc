#include "profile/upf/packed.h"

#include <zstd.h>

#include "profile/base/checksum.h"
#include "profile/base/room.h"

namespace uptier::profile {
namespace {

constexpr int kZstdLevel = 1;
constexpr int kZstdWindowLog = 14;

}  // namespace

// Like ZSTD_compress, with a small window: repetitions occur within few methods, and the context
// for a whole group would be larger than two of these.
size_t compress(ByteSpan raw, std::span<std::byte> out) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (context == nullptr) return raw.size();
  (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kZstdLevel);
  (void)ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kZstdWindowLog);
  const size_t stored = ZSTD_compress2(context, out.data(), out.size(), raw.data(), raw.size());
  ZSTD_freeCCtx(context);
  return stored;
}

// Turns the bytes from `start` on into a record: room for its header, then its payload.
void finish_record(UpfKind kind, uint32_t sequence, uint16_t version, size_t start, Bytes& out) {
  out.resize(start + ((out.size() - start + 15) & ~size_t{15}));
  const std::span<std::byte> record = std::span(out).subspan(start);
  store<uint32_t>(record, 0, kIdbMagic);
  store<uint16_t>(record, 4, static_cast<uint16_t>(kind));
  store<uint16_t>(record, 6, version);
  store<uint64_t>(record, 8, record.size() - kIdbHeader);
  store<uint32_t>(record, 20, sequence);
  seal_record(record);
}

void append_packed(ByteSpan raw, size_t share, Bytes& out) {
  const size_t at = out.size();
  ByteWriter writer(out);
  writer.u32(static_cast<uint32_t>(raw.size()));
  writer.u32(static_cast<uint32_t>(raw.size()));
  const size_t body = out.size();
  if (raw.size() > kColdBytes) {
    out.resize(body + ZSTD_compressBound(raw.size()));
    const size_t stored = compress(raw, std::span(out).subspan(body));
    const bool shrinks = ZSTD_isError(stored) == 0 && stored < raw.size() / 8 * share &&
                         raw.size() <= stored * kMaxRatio;
    if (shrinks) {
      store<uint32_t>(out, at, static_cast<uint32_t>(stored));
      out.resize(body + stored);
      return;
    }
    out.resize(body);
  }
  out.insert(out.end(), raw.begin(), raw.end());
}

void append_record(UpfKind kind, uint32_t sequence, ByteSpan payload, Bytes& out,
                   uint16_t version) {
  const size_t start = out.size();
  make_room(out, kRecordHeader + payload.size() + 15);
  out.resize(start + kRecordHeader);
  out.insert(out.end(), payload.begin(), payload.end());
  finish_record(kind, sequence, version, start, out);
}

}  // namespace uptier::profile
