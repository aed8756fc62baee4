// Groups are encoded first, so that all strings are known when their table is written.
#include "profile/upf/segment_writer.h"

#include <zstd.h>

#include <algorithm>

#include "profile/base/checksum.h"
#include "profile/data/text.h"
#include "profile/upf/calls.h"
#include "profile/upf/inlined.h"
#include "profile/upf/method.h"
#include "profile/upf/write.h"

namespace uptier::profile {
namespace {

constexpr size_t kMaxLog = 4 << 20;
constexpr uint32_t kFirstGroup = 3;  // after header, seal and run
constexpr size_t kManyEntries = 4;   // if an entry takes no more than this part of a group, others
                                     // are likely to follow

// Returns the names of instruments in IREE's database; empty for control flow.
std::string_view instrument_type(SlotKind kind) {
  switch (kind) {
    case SlotKind::kCounter: return "iree.instrument.counter";
    case SlotKind::kRange: return "iree.instrument.range";
    case SlotKind::kValue: return "iree.instrument.probe";
    case SlotKind::kLog: return "iree.instrument.log";
    case SlotKind::kGauge: return "uptier.instrument.gauge";
    default: return {};
  }
}

Bytes run_payload(const ProfileInfo& info) {
  Bytes out;
  ByteWriter writer(out);
  const size_t uploads = std::min(info.uploads.size(), ProfileInfo::kMaxUploads);
  for (const uint64_t word : {info.time, info.runs, info.weight, info.interval,
                              info.forgotten + (info.uploads.size() - uploads),
                              uint64_t{info.modules.size()}, uint64_t{uploads}}) {
    writer.u64(word);
  }
  for (const std::string* text : {&info.engine, &info.host, &info.schedule}) writer.text(*text);
  for (const uint64_t module : info.modules) writer.u64(module);
  for (size_t i = info.uploads.size() - uploads; i < info.uploads.size(); ++i) {
    writer.u64(info.uploads[i].time);
    writer.u64(info.uploads[i].hash);
  }
  return out;
}

Bytes past_payload(const RunRecord& run) {
  Bytes out;
  ByteWriter writer(out);
  writer.u64(run.time);
  writer.array(run.log);
  writer.array(run.timeline);
  return out;
}

}  // namespace

void SegmentWriter::add(const MethodProfile& method) {
  if (!method.check().ok()) return drop();
  Bytes entry;
  append_entry(method, strings_.add(method.name), time_, entry);
  if (entry.size() > kMaxContent / 2) return drop();
  const std::string key = group_key(method);
  Open& open = open_[key];
  open.module_key = method.key.module_key;
  if (!open.entries.empty() && open.entries.size() + entry.size() > kGroupBytes) close(key, open);
  if (open.entries.size() > kGroupBytes / kManyEntries) open.entries.reserve(kGroupBytes);
  open.entries.insert(open.entries.end(), entry.begin(), entry.end());
  ++open.methods;
  ++methods_;
  add_instruments(method);
}

// A record contains its own position, which is known at once: it comes after all earlier groups.
void SegmentWriter::close(const std::string& key, Open& open) {
  const uint32_t id = strings_.add(key);
  Bytes record(kRecordHeader);
  ByteWriter writer(record);
  writer.u32(id);
  writer.u32(open.methods);
  writer.u64(open.module_key);
  append_packed(open.entries, kHotShare, record);
  const auto sequence = kFirstGroup + static_cast<uint32_t>(groups_.size());
  finish_record(UpfKind::kGroup, sequence, kUpfEntries, 0, record);
  groups_.push_back({id, open.methods, record.size()});
  open = {};
  if (spill_) return spill_->append(record);
  record.shrink_to_fit();
  records_.push_back(std::move(record));
}

void SegmentWriter::add(const InlinedBodies& bodies) {
  inlined_ = inlined_parts(bodies, dropped_);
  inlined_sites_ = inlined_site_parts(bodies, dropped_);
}

void SegmentWriter::record(UpfKind kind, ByteSpan payload, uint16_t version) {
  append_record(kind, sequence_++, payload, out_, version);
}

// Adds a slot's words, only counts: compilers look them up by (stage, scope hash, key).
void SegmentWriter::add_instruments(const MethodProfile& method) {
  for (const Slot& slot : method.schema.slots) {
    const std::string_view type = instrument_type(slot.kind);
    if (type.empty()) continue;
    texts_.push_back(hex(method.schema.cfg_hash));
    const std::string_view scope = texts_.back();
    texts_.push_back(std::string(slot_kind_name(slot.kind)) + "#" + std::to_string(slot.site));
    const std::span<const uint64_t> words = method.words(slot.kind, slot.site);
    const ByteSpan bytes = std::as_bytes(words);
    payloads_.emplace_back(bytes.begin(), bytes.end());
    instruments_.push_back({type, "uptier", scope, texts_.back(), {}, payloads_.back()});
  }
}

void SegmentWriter::add(const ForeignTables& foreign) {
  for (const ForeignInstrument& i : foreign.instruments) {
    instruments_.push_back({i.type, i.stage, i.scope_hash, i.scope_key, i.metadata, i.payload});
  }
  for (const ForeignData& d : foreign.data) {
    Bytes& content = user_data_.emplace_back();
    ByteWriter writer(content);
    writer.u32(strings_.add(d.type));
    writer.u32(strings_.add(d.metadata));
    writer.u64(0);
    content.insert(content.end(), d.data.begin(), d.data.end());
  }
}

void SegmentWriter::string_table() {
  const size_t start = out_.size();
  append_chunk_header(out_, kIdbStringTable, 0, strings_.content_size());
  strings_.append_content(out_);
  out_.resize((out_.size() + 15) & ~size_t{15});
  seal_from(start);
}

void SegmentWriter::sealed_chunk(uint16_t type, ByteSpan content) {
  const size_t start = out_.size();
  append_chunk(out_, type, 0, content);
  seal_from(start);
}

// Seals the last chunk.
void SegmentWriter::seal_from(size_t start) {
  const ByteSpan chunk = ByteSpan(out_).subspan(start);
  Bytes seal;
  ByteWriter writer(seal);
  writer.u64(chunk.size());
  writer.u64(XXH3_64bits(chunk.data(), chunk.size()));
  record(UpfKind::kSeal, seal);
}

// A part that does not fit into a record is left out: it is advice, and the file is valid without
// it.
void SegmentWriter::packed_record(UpfKind kind, ByteSpan raw) {
  if (raw.empty() || raw.size() > kMaxContent / 2) return;
  Bytes packed;
  append_packed(raw, kColdShare, packed);
  record(kind, packed);
}

SegmentPieces SegmentWriter::finish(const ProfileInfo& info, std::string_view log,
                                    const Timeline& timeline, const CallProfile* calls,
                                    std::span<const RunRecord> past, uint64_t* dropped) {
  for (auto& [key, open] : open_) {
    if (!open.entries.empty()) close(key, open);
  }
  const Bytes table = instrument_table(instruments_, strings_);
  Bytes payload;
  ByteWriter header(payload);
  header.u64(kUpfName);
  header.u32(kUpfVersion);
  header.u32(0);
  record(UpfKind::kHeader, payload);
  string_table();
  record(UpfKind::kRun, run_payload(info));
  Bytes index;
  ByteWriter rows(index);
  rows.u32(static_cast<uint32_t>(groups_.size()));
  rows.u32(0);
  uint64_t at = out_.size();
  for (const Group& group : groups_) {
    rows.u64(at);
    rows.u32(group.key);
    rows.u32(group.methods);
    at += group.bytes;
  }
  sequence_ += static_cast<uint32_t>(groups_.size());
  SegmentPieces pieces{std::exchange(out_, {}), std::move(records_), std::move(spill_), {}};
  if (!instruments_.empty()) sealed_chunk(kIdbInstrumentTable, table);
  for (const Bytes& content : user_data_) sealed_chunk(kIdbUserData, content);
  packed_record(UpfKind::kLog, std::as_bytes(std::span(log.substr(0, kMaxLog))));
  for (const Bytes& part : inlined_) packed_record(UpfKind::kInlined, part);
  for (const Bytes& part : inlined_sites_) packed_record(UpfKind::kInlinedSites, part);
  if (calls != nullptr) {
    for (const UpfKind kind : kCallKinds) packed_record(kind, call_part(kind, *calls));
  }
  if (!timeline.empty()) packed_record(UpfKind::kTimeline, timeline_bytes(timeline));
  for (const RunRecord& run : past) record(UpfKind::kPast, past_payload(run));
  record(UpfKind::kIndex, index);
  Bytes end;
  ByteWriter last(end);
  last.u64(methods_);
  last.u64(groups_.size());
  last.u64(dropped_);
  record(UpfKind::kEnd, end);
  pieces.behind = std::move(out_);
  if (dropped != nullptr) *dropped = dropped_;
  return pieces;
}

int SegmentPieces::each(const std::function<int(ByteSpan)>& take) const {
  int error = take(front);
  for (size_t i = 0; i < groups.size() && error == 0; ++i) error = take(groups[i]);
  if (error == 0 && spilled) error = spilled->each(take);
  return error == 0 ? take(behind) : error;
}

// Each piece is freed after it is copied.
Bytes SegmentPieces::joined() && {
  size_t size = front.size() + behind.size();
  for (const Bytes& group : groups) size += group.size();
  Bytes all;
  all.reserve(size);
  const auto move_in = [&all](Bytes& piece) {
    all.insert(all.end(), piece.begin(), piece.end());
    piece = {};
  };
  move_in(front);
  std::ranges::for_each(groups, move_in);
  move_in(behind);
  return all;
}

}  // namespace uptier::profile
