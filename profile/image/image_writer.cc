#include "profile/image/image_writer.h"

#include "profile/trace/trace_file.h"

namespace uptier::profile {

ImageWriter::ImageWriter(const ImageKey& key) {
  Bytes header;
  ByteWriter h(header);
  h.u64(kImageName);
  h.u32(kImageVersion);
  h.u32(0);
  record(ImageKind::kHeader, header);
  Bytes payload;
  ByteWriter k(payload);
  k.array(key.build);
  k.array(key.processor);
  k.u64(key.layout);
  k.text(key.options);
  record(ImageKind::kKey, payload);
}

void ImageWriter::record(ImageKind kind, ByteSpan payload) {
  const size_t start = out_.size();
  const uint64_t content = kRecordHeader - kChunkHeader + payload.size();
  out_.resize(start + kRecordHeader);
  const std::span<std::byte> head = std::span(out_).subspan(start);
  store<uint32_t>(head, 0, kTraceMagic);
  store<uint16_t>(head, 4, static_cast<uint16_t>(kind));
  store<uint16_t>(head, 6, 0);
  store<uint64_t>(head, 8, content);
  store<uint32_t>(head, 20, sequence_++);
  out_.insert(out_.end(), payload.begin(), payload.end());
  out_.resize((out_.size() + 15) & ~size_t{15});
  seal_record(std::span(out_).subspan(start));
}

void ImageWriter::add(const Sha256& content, uint32_t function, ByteSpan bytes) {
  auto [at, fresh] = index_[content].try_emplace(function);
  if (!fresh) return;
  if (!group_.empty() && group_.size() + bytes.size() > kCodeGroupBytes) close_group();
  at->second = {static_cast<uint32_t>(bytes.size()), out_.size() + kRecordHeader + group_.size()};
  group_.insert(group_.end(), bytes.begin(), bytes.end());
  ++methods_;
}

void ImageWriter::close_group() {
  if (!group_.empty()) record(ImageKind::kCode, group_);
  group_.clear();
}

Bytes ImageWriter::finish(const std::vector<Bytes>& objects, ByteSpan profile) {
  close_group();
  Bytes payload;
  ByteWriter o(payload);
  o.u64(objects.size());
  for (const Bytes& id : objects) o.array(id);
  record(ImageKind::kObjects, payload);
  if (!profile.empty()) record(ImageKind::kProfile, profile);
  payload.clear();
  ByteWriter w(payload);
  w.u64(index_.size());
  for (const auto& [content, rows] : index_) {
    const ByteSpan hash = std::as_bytes(std::span(content));
    payload.insert(payload.end(), hash.begin(), hash.end());
    w.u64(rows.size());
    for (const auto& [function, row] : rows) {
      w.u32(function);
      w.u32(row.size);
      w.u64(row.offset);
    }
  }
  record(ImageKind::kIndex, payload);
  payload.clear();
  w.u64(methods_);
  w.u64(out_.size());
  record(ImageKind::kEnd, payload);
  return std::move(out_);
}

}  // namespace uptier::profile
