#include "profile/image/image_reader.h"

#include <algorithm>
#include <string>

#include "profile/base/checksum.h"
#include "profile/base/corrupt.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

Error broken(uint64_t at, const char* rule) {
  return corrupt("offset " + std::to_string(at) + ": " + rule);
}

uint32_t bit_of(ImageKind k) { return 1u << (static_cast<uint16_t>(k) - kFirstImageType); }

// Returns the record that begins here, whole and undamaged, header and padding included.
Result<ByteSpan> whole_record(ByteSpan file, uint64_t at, uint32_t sequence) {
  const ByteSpan rest = file.subspan(at);
  if (rest.size() < kRecordHeader) return broken(at, "the image is cut off");
  const auto content = load<uint64_t>(rest, 8);
  const auto type = load<uint16_t>(rest, 4);
  const bool ours = load<uint32_t>(rest, 0) == kTraceMagic && type >= kFirstImageType &&
                    type <= kLastImageType && load<uint16_t>(rest, 6) == 0 &&
                    load<uint32_t>(rest, 16) == header_checksum(rest);
  if (!ours) return broken(at, "this is no record of an image");
  if (load<uint32_t>(rest, 20) != sequence) return broken(at, "a record is missing");
  if (content < kRecordHeader - kChunkHeader) return broken(at, "the record is too short");
  if (content > rest.size() - kChunkHeader) return broken(at, "the image is cut off");
  const uint64_t size = (kChunkHeader + content + 15) & ~uint64_t{15};
  if (size > rest.size()) return broken(at, "the image is cut off");
  const ByteSpan record = rest.first(size);
  const uint64_t sum = content_checksum(load<uint32_t>(rest, 16), record.subspan(kRecordHeader));
  if (sum != load<uint64_t>(rest, 24)) return broken(at, "the record is damaged");
  for (const std::byte b : record.subspan(kChunkHeader + content)) {
    if (b != std::byte{0}) return broken(at, "the padding is not zero");
  }
  return record;
}

}  // namespace

ImageView::Row ImageView::Content::row(uint64_t n) const {
  const ByteSpan at = rows.subspan(n * kIndexRowBytes, kIndexRowBytes);
  return {load<uint32_t>(at, 0), load<uint32_t>(at, 4), load<uint64_t>(at, 8)};
}

Result<ImageView> ImageView::open(ByteSpan file) {
  ImageView view;
  view.file_ = file;
  uint64_t at = 0;
  for (uint32_t sequence = 0; (view.seen_ & bit_of(ImageKind::kEnd)) == 0; ++sequence) {
    Result<ByteSpan> record = whole_record(file, at, sequence);
    if (!record) return record.error();
    const uint64_t content = load<uint64_t>(*record, 8);
    const ByteSpan payload =
        record->subspan(kRecordHeader, content - (kRecordHeader - kChunkHeader));
    const auto type = load<uint16_t>(*record, 4);
    const bool header = type == static_cast<uint16_t>(ImageKind::kHeader);
    if (header != (sequence == 0)) return broken(at, "the header is not the first record");
    if (Status s = view.read(payload, type, at); !s) return s.error();
    at += record->size();
  }
  if (at != file.size()) return broken(at, "there are bytes after the end");
  const uint32_t needed = bit_of(ImageKind::kHeader) | bit_of(ImageKind::kKey) |
                          bit_of(ImageKind::kObjects) | bit_of(ImageKind::kIndex);
  if ((view.seen_ & needed) != needed) return broken(at, "a record is missing");
  uint64_t methods = 0;
  for (const Content& c : view.contents_) {
    if (Status s = view.check_rows(c); !s) return s.error();
    methods += c.methods;
  }
  if (methods != view.methods_) return broken(at, "the number of methods is not that of the index");
  return view;
}

Status ImageView::read(ByteSpan payload, uint16_t type, uint64_t at) {
  const auto kind = static_cast<ImageKind>(type);
  const bool again = (seen_ & bit_of(kind)) != 0;
  seen_ |= bit_of(kind);
  if (again && kind != ImageKind::kCode) return broken(at, "a record comes twice");
  ByteReader r(payload);
  switch (kind) {
    case ImageKind::kHeader: {
      if (r.u64() != kImageName) return broken(at, "this is no image");
      const uint32_t version = r.u32();
      if (version != kImageVersion) {
        return Error{ErrorCode::kUnsupported, "images of version " + std::to_string(version) +
                                                  " are not read, only of version " +
                                                  std::to_string(kImageVersion)};
      }
      const bool whole = r.u32() == 0 && r.ok() && r.rest() == 0;
      return whole ? Status() : Status(broken(at, "the header is damaged"));
    }
    case ImageKind::kKey: return read_key(payload);
    case ImageKind::kObjects: return read_objects(payload);
    case ImageKind::kIndex: return read_index(payload);
    case ImageKind::kProfile: profile_ = payload; return {};
    case ImageKind::kCode:
      code_.push_back({at + kRecordHeader, at + kRecordHeader + payload.size()});
      return {};
    case ImageKind::kEnd: {
      methods_ = r.u64();
      const bool whole = r.u64() == at && r.ok() && r.rest() == 0;
      return whole ? Status() : Status(broken(at, "the end is damaged"));
    }
  }
  return {};
}

Status ImageView::read_key(ByteSpan payload) {
  ByteReader r(payload);
  key_.build = r.copy();
  key_.processor = r.copy();
  key_.layout = r.u64();
  key_.options = r.text();
  if (r.ok() && r.rest() == 0) return {};
  return corrupt("the key is damaged");
}

Status ImageView::read_objects(ByteSpan payload) {
  ByteReader r(payload);
  const uint64_t count = r.u64();
  for (uint64_t i = 0; i < count && r.ok(); ++i) objects_.push_back(r.copy());
  if (r.ok() && r.rest() == 0) return {};
  return corrupt("the list of objects is damaged");
}

Status ImageView::read_index(ByteSpan payload) {
  ByteReader r(payload);
  const uint64_t count = r.u64();
  size_t at = 8;
  for (uint64_t i = 0; i < count; ++i) {
    constexpr size_t kHead = sizeof(Sha256) + 8;
    if (payload.size() - at < kHead) return corrupt("the index is cut off");
    Content c;
    std::memcpy(c.hash.data(), payload.data() + at, sizeof(Sha256));
    c.methods = load<uint64_t>(payload, at + sizeof(Sha256));
    at += kHead;
    if (c.methods > (payload.size() - at) / kIndexRowBytes) return corrupt("the index is cut off");
    c.rows = payload.subspan(at, c.methods * kIndexRowBytes);
    at += c.rows.size();
    contents_.push_back(c);
  }
  if (at != payload.size()) return corrupt("there are bytes after the index");
  return {};
}

// Rows rise by function, and each record lies in one code record.
Status ImageView::check_rows(const Content& content) const {
  for (uint64_t n = 0; n < content.methods; ++n) {
    const Row row = content.row(n);
    if (n != 0 && content.row(n - 1).function >= row.function) {
      return corrupt("the rows of the index do not rise");
    }
    auto after = std::ranges::upper_bound(code_, row.offset, {}, &Part::begin);
    const bool inside = after != code_.begin() && row.offset < (after - 1)->end &&
                        row.size <= (after - 1)->end - row.offset;
    if (!inside) return corrupt("a row of the index leads outside of the code");
  }
  return {};
}

const ImageView::Content* ImageView::find(const Sha256& content) const {
  auto at = std::ranges::find(contents_, content, &Content::hash);
  return at == contents_.end() ? nullptr : &*at;
}

ByteSpan ImageView::find(const Content& content, uint32_t function) const {
  uint64_t low = 0, high = content.methods;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (content.row(middle).function < function) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == content.methods) return {};
  const Row row = content.row(low);
  return row.function == function ? record_at(row) : ByteSpan();
}

}  // namespace uptier::profile
