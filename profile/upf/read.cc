#include "profile/upf/read.h"

#include <zstd.h>

#include "profile/checksum.h"
#include "profile/upf/calls.h"
#include "profile/upf/inlined.h"

namespace uptier::profile {
namespace {

bool is_ours(const IdbHeader& h) {
  const bool header = h.type == kIdbFileHeader && h.content != 0;
  return header || (h.type >= kFirstUpfType && h.type <= kLastUpfType);
}

constexpr uint16_t kTraceTypes = 0x5500;  // the file header of a trace; up to kFirstUpfType

bool is_trace(const IdbHeader& h) { return h.type >= kTraceTypes && h.type < kFirstUpfType; }

bool is_known(uint16_t type) {
  switch (static_cast<UpfKind>(type)) {
    case UpfKind::kHeader:
    case UpfKind::kSeal:
    case UpfKind::kRun:
    case UpfKind::kGroup:
    case UpfKind::kLog:
    case UpfKind::kShapes:
    case UpfKind::kCalls:
    case UpfKind::kOrder:
    case UpfKind::kInlined:
    case UpfKind::kIndex:
    case UpfKind::kTimeline:
    case UpfKind::kPast:
    case UpfKind::kEnd: return true;
  }
  return false;
}

bool is_known(const IdbHeader& h) {
  const bool group = static_cast<UpfKind>(h.type) == UpfKind::kGroup;
  return is_known(h.type) && h.version <= (group ? kUpfEntries : 0);
}

// Where the packed entries of a group begin.
size_t packed_at(uint16_t format) { return kRecordHeader + (format == 0 ? 8 : 16); }

bool is_possible(uint64_t content) {
  return content % 16 == 0 && content >= kRecordHeader - kIdbHeader && content <= kMaxContent;
}

bool content_is_whole(ByteSpan record) {
  return content_checksum(load<uint32_t>(record, 16), record.subspan(kRecordHeader)) ==
         load<uint64_t>(record, 24);
}

bool ascending(const auto& list) {
  for (size_t i = 1; i < list.size(); ++i) {
    if (!(list[i - 1] < list[i])) return false;
  }
  return true;
}

}  // namespace

// Damaged records of a trace may be nested in each other, each as long as the rest of the file, and
// each is looked at whole. In a file that so many parts were skipped of no more are looked for.
constexpr uint64_t kManySkipped = 256;

UpfReader::UpfReader(ByteSpan file) : file_(file) {
  scan();
  if (!segments_.empty()) {
    verify_groups(segments_.back());
    truncated_ = truncated_ || !segments_.back().complete;
  }
}

void UpfReader::warn(uint64_t offset, const std::string& rule) {
  ++skipped_;
  if (warnings_.size() == kWarnings) return;
  warnings_.push_back("offset " + std::to_string(offset) + ": " + rule);
}

void UpfReader::scan() {
  for (uint64_t at = 0; at < file_.size();) {
    if (file_.size() - at < kIdbHeader) {
      truncated_ = true;
      return;
    }
    at = scan_chunk(at);
  }
}

// Returns where the next chunk is to be looked for; the file's size to end.
uint64_t UpfReader::scan_chunk(uint64_t at) {
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  if (!header.ok()) {
    warn(at, header.error().message);
    return next_record(at + 16);
  }
  if (is_trace(*header)) return scan_trace(at);
  return is_ours(*header) ? scan_record(at, *header) : scan_foreign(at, *header);
}

// Takes the trace that begins here as far as its records are whole; returns where to go on. Behind
// a record that was cut off another file may begin at any byte.
uint64_t UpfReader::scan_trace(uint64_t at) {
  uint64_t end = at;
  uint16_t last = 0;
  bool whole = true;
  while (whole && end < file_.size()) {
    const uint64_t rest = file_.size() - end;
    const Result<IdbHeader> header =
        rest < kIdbHeader ? Result<IdbHeader>(IdbHeader{}) : read_idb_header(file_.subspan(end));
    const bool goes_on = rest < kIdbHeader || (header.ok() && is_trace(*header) &&
                                               (end == at || header->type != kTraceTypes));
    if (!goes_on) break;
    whole = is_record(end) && is_possible(header->content) && header->size() <= rest &&
            skipped_ < kManySkipped;
    if (!whole) break;
    whole = content_is_whole(file_.subspan(end, header->size()));
    if (!whole) warn(end, "trace: the content checksum is wrong");
    if (!whole) break;
    last = header->type;
    end += header->size();
  }
  if (end != at) traces_.push_back(file_.subspan(at, end - at));
  truncated_ = truncated_ || last != static_cast<uint16_t>(RecordKind::kEnd);
  if (whole) return end;
  while (++end < file_.size() && !is_record(end)) {}
  return end;
}

uint64_t UpfReader::scan_foreign(uint64_t at, const IdbHeader& header) {
  take_foreign(segment_at(at, false, next_sequence_));
  const uint64_t rest = file_.size() - at;
  const bool inside = header.content <= rest - kIdbHeader && header.size() <= rest;
  if (!inside) {
    warn(at, "a chunk of " + std::to_string(header.content) + " bytes reaches past the file");
    return next_record(at + 16);
  }
  const bool known = header.type == kIdbFileHeader || header.type == kIdbStringTable ||
                     header.type == kIdbInstrumentTable || header.type == kIdbUserData;
  if (!known || header.version != 0) {
    warn(at, "a chunk of unknown type " + std::to_string(header.type) + " version " +
                 std::to_string(header.version));
  }
  foreign_ = {at, header.version == 0 ? header.type : kIdbUserData,
              file_.subspan(at, header.size()), file_.subspan(at + kIdbHeader, header.content)};
  return at + header.size();
}

uint64_t UpfReader::scan_record(uint64_t at, const IdbHeader& header) {
  const uint64_t rest = file_.size() - at;
  if (rest < kRecordHeader) {
    truncated_ = true;
    return file_.size();
  }
  if (!is_record(at)) {
    warn(at, "the header checksum is wrong");
    return next_record(at + 16);
  }
  if (!is_possible(header.content)) {
    warn(at, "a record of " + std::to_string(header.content) + " bytes is not possible");
    return next_record(at + 16);
  }
  if (header.size() > rest) {
    truncated_ = true;
    return file_.size();
  }
  const ByteSpan record = file_.subspan(at, header.size());
  const auto kind = static_cast<UpfKind>(header.type);
  const uint32_t sequence = load<uint32_t>(record, 20);
  Segment& segment = segment_at(at, kind == UpfKind::kHeader, sequence);
  next_sequence_ = uint64_t{sequence} + 1;
  if (!is_known(header)) {
    warn(at, "a record of unknown type " + std::to_string(header.type) + " version " +
                 std::to_string(header.version));
  } else {
    if (kind != UpfKind::kSeal) take_foreign(segment);
    if (kind == UpfKind::kGroup) {
      take_group(at, header.version, record, segment);
    } else {
      take_record(kind, at, record, segment);
    }
  }
  return at + header.size();
}

// Whether a record of ours starts here: its header checksum says so.
bool UpfReader::is_record(uint64_t at) const {
  if (at > file_.size() || file_.size() - at < kRecordHeader) return false;
  const ByteSpan here = file_.subspan(at);
  const bool magic = load<uint32_t>(here, 0) == kIdbMagic;
  return magic && load<uint32_t>(here, 16) == header_checksum(here);
}

uint64_t UpfReader::next_record(uint64_t from) const {
  for (uint64_t at = from; at < file_.size(); at += 16) {
    if (is_record(at)) return at;
  }
  return file_.size();
}

// Returns the segment that a chunk belongs to, which is a new one at a header. What follows an end
// without a header belongs to a segment that has lost it.
UpfReader::Segment& UpfReader::segment_at(uint64_t at, bool starts, uint64_t sequence) {
  const bool lost = segments_.empty() || segments_.back().complete || sequence < next_sequence_;
  if (starts || lost) {
    if (!segments_.empty()) {
      take_foreign(segments_.back());
      verify_groups(segments_.back());
      truncated_ = truncated_ || !segments_.back().complete;
    }
    if (!starts) warn(at, "a segment has lost its header");
    segments_.emplace_back();
    segments_.back().offset = at;
    foreign_ = {};
    indexed_ = false;
    next_sequence_ = starts ? 0 : sequence;
  }
  if (sequence > next_sequence_) {
    warn(at, "records " + std::to_string(next_sequence_) + ".." + std::to_string(sequence - 1) +
                 " are missing");
  }
  return segments_.back();
}

void UpfReader::take_record(UpfKind kind, uint64_t at, ByteSpan record, Segment& segment) {
  if (!content_is_whole(record)) return warn(at, "the content checksum is wrong");
  const ByteSpan payload = record.subspan(kRecordHeader);
  switch (kind) {
    case UpfKind::kHeader: {
      const bool named = payload.size() >= 16 && load<uint64_t>(payload, 0) == kUpfName;
      const bool known = named && load<uint32_t>(payload, 8) == kUpfVersion;
      segment.headed = known;
      return known ? void() : warn(at, "the file header is of another format or version");
    }
    case UpfKind::kSeal: return take_seal(at, payload, segment);
    case UpfKind::kRun: return take_run(at, payload, segment);
    case UpfKind::kLog: segment.log = record; return;
    case UpfKind::kTimeline: segment.timeline = record; return;
    case UpfKind::kShapes:
    case UpfKind::kCalls:
    case UpfKind::kOrder: segment.calls.push_back(record); return;
    case UpfKind::kInlined: segment.inlined.push_back(record); return;
    case UpfKind::kPast: return take_past(at, payload, segment);
    case UpfKind::kIndex: return take_index(at, payload, segment);
    case UpfKind::kEnd: return take_end(at, payload, segment);
    case UpfKind::kGroup: return;
  }
}

void UpfReader::take_run(uint64_t at, ByteSpan payload, Segment& segment) {
  ByteReader in(payload);
  ProfileInfo info;
  info.time = in.u64();
  info.runs = in.u64();
  info.weight = in.u64();
  info.interval = in.u64();
  info.forgotten = in.u64();
  const uint64_t modules = in.u64(), uploads = in.u64();
  info.engine = in.text();
  info.host = in.text();
  info.schedule = in.text();
  const bool fits = in.ok() && modules <= in.rest() / 8 && uploads <= ProfileInfo::kMaxUploads;
  for (uint64_t i = 0; fits && i < modules; ++i) info.modules.push_back(in.u64());
  for (uint64_t i = 0; fits && i < uploads; ++i) {
    const uint64_t time = in.u64();
    info.uploads.push_back({time, in.u64()});
  }
  const bool ordered = ascending(info.modules) && ascending(info.uploads);
  if (!fits || !in.ok() || !ordered)
    return warn(at, "run: lists that do not fit, or are unordered");
  segment.info = std::move(info);
  segment.has_info = true;
}

void UpfReader::take_group(uint64_t at, uint16_t format, ByteSpan record, Segment& segment) {
  const ByteSpan payload = record.subspan(kRecordHeader);
  if (payload.size() < 16) return warn(at, "group: shorter than its head");
  const auto key = segment.strings.find(load<uint32_t>(payload, 0));
  const uint64_t module_key = format == 0 ? 0 : load<uint64_t>(payload, 8);
  segment.groups.push_back(
      {at, key.value_or(""), load<uint32_t>(payload, 4), format, module_key, record});
}

// An index tells which groups there are, and confirms their keys.
void UpfReader::take_index(uint64_t at, ByteSpan payload, Segment& segment) {
  ByteReader in(payload);
  const uint32_t count = in.u32();
  in.u32();
  bool same = in.ok() && count <= in.rest() / 16 && count == segment.groups.size();
  for (uint32_t i = 0; same && i < count; ++i) {
    const uint64_t offset = in.u64();
    const uint32_t key = in.u32(), methods = in.u32();
    const UpfReader::Group& group = segment.groups[i];
    const ByteSpan head = group.record.subspan(kRecordHeader);
    same = offset == group.offset - segment.offset && key == load<uint32_t>(head, 0) &&
           methods == group.methods;
  }
  indexed_ = same;
  if (!same) warn(at, "the index does not name the groups that are here");
}

void UpfReader::take_end(uint64_t at, ByteSpan payload, Segment& segment) {
  ByteReader in(payload);
  const uint64_t methods = in.u64(), groups = in.u64();
  segment.dropped = in.u64();
  segment.complete = true;
  uint64_t here = 0;
  for (const Group& group : segment.groups) here += group.methods;
  const bool same = in.ok() && groups == segment.groups.size() && methods == here;
  if (!same) {
    warn(at, "the segment had " + std::to_string(methods) + " methods in " +
                 std::to_string(groups) + " groups, here are " + std::to_string(here) + " in " +
                 std::to_string(segment.groups.size()));
  }
}

void UpfReader::take_seal(uint64_t at, ByteSpan payload, Segment& segment) {
  ByteReader in(payload);
  const uint64_t size = in.u64(), hash = in.u64();
  const ByteSpan chunk = foreign_.chunk;
  const bool right = in.ok() && size == chunk.size() && !chunk.empty() &&
                     hash == XXH3_64bits(chunk.data(), chunk.size());
  if (right) return take_foreign(segment);
  warn(at, "the chunk before this seal is not the one that was sealed");
  foreign_ = {};
}

// Takes the chunk in IREE's layout that waits; one that other tools have written has no seal.
void UpfReader::take_foreign(Segment& segment) {
  const Foreign chunk = foreign_;
  foreign_ = {};
  if (chunk.chunk.empty()) return;
  if (chunk.type == kIdbStringTable) {
    Result<StringTable> strings = StringTable::read(chunk.content);
    if (!strings.ok()) return warn(chunk.offset, "string table: " + strings.error().message);
    segment.strings = std::move(*strings);
  } else if (chunk.type == kIdbInstrumentTable) {
    Result<std::vector<Instrument>> read = read_instruments(chunk.content, segment.strings);
    if (!read.ok()) return warn(chunk.offset, "instruments: " + read.error().message);
    segment.instruments.insert(segment.instruments.end(), read->begin(), read->end());
  }
}

// Without an index, a damaged key would hide a group from those who ask for it.
void UpfReader::verify_groups(Segment& segment) {
  if (indexed_) return;
  std::erase_if(segment.groups, [this](const Group& group) {
    const bool whole = content_is_whole(group.record);
    if (!whole) warn(group.offset, "the content checksum is wrong");
    return !whole;
  });
}

// Returns the bytes of a packed part, where they lie or in `buffer`.
bool UpfReader::unpack(uint64_t at, ByteSpan packed, Bytes& buffer, ByteSpan& raw) {
  const auto refuse = [&](const char* rule) {
    warn(at, rule);
    return false;
  };
  if (packed.size() < 8) return refuse("packed: no sizes");
  const uint64_t stored = load<uint32_t>(packed, 0), size = load<uint32_t>(packed, 4);
  const ByteSpan body = packed.subspan(8);
  if (stored > body.size() || body.size() - stored >= 16) return refuse("packed: another length");
  const bool possible = size <= kMaxContent && size <= stored * kMaxRatio;
  if (!possible) return refuse("packed: it cannot unpack to so much");
  raw = body.first(stored);
  if (stored == size) return true;
  buffer.resize(size);
  if (ZSTD_decompress(buffer.data(), size, body.data(), stored) != size) {
    return refuse("packed: zstd does not unpack it");
  }
  raw = buffer;
  return true;
}

void UpfReader::read(const Segment& segment, const Group& group, const Visitor& visit) {
  if (!content_is_whole(group.record)) {
    return warn(group.offset, "the content checksum is wrong");
  }
  ByteSpan raw;
  const ByteSpan packed = group.record.subspan(packed_at(group.format));
  if (!unpack(group.offset, packed, unpacked_, raw)) return;
  uint32_t methods = 0;
  for (; !raw.empty(); ++methods) {
    const Result<MethodView> view = take_entry(group.format, group.module_key, raw, words_);
    if (!view.ok()) return warn(group.offset, "group: " + view.error().message);
    const auto name = segment.strings.find(view->name);
    if (!name) warn(group.offset, "group: a name that is not in the string table");
    visit(*view, name.value_or(""));
  }
  if (methods != group.methods) {
    warn(group.offset, "group: " + std::to_string(methods) + " methods instead of " +
                           std::to_string(group.methods));
  }
}

InlinedBodies UpfReader::inlined(const Segment& segment) {
  Profile sum;
  for (const ByteSpan record : segment.inlined) {
    ByteSpan raw;
    if (!unpack(offset_of(record), record.subspan(kRecordHeader), unpacked_, raw)) continue;
    Profile part;
    Result<InlinedBodies> read = read_inlined_part(raw);
    if (read.ok()) part.inlined = std::move(*read);
    if (!read.ok()) warn(offset_of(record), "inlined bodies: " + read.error().message);
    (void)merge(sum, part);
  }
  return std::move(sum.inlined);
}

CallProfile UpfReader::calls(const Segment& segment) {
  CallProfile calls;
  for (const ByteSpan record : segment.calls) {
    ByteSpan raw;
    const auto at = static_cast<uint64_t>(record.data() - file_.data());
    if (!unpack(at, record.subspan(kRecordHeader), unpacked_, raw)) continue;
    const auto kind = static_cast<UpfKind>(load<uint16_t>(record, 4));
    if (const Status taken = take_call_part(kind, raw, calls); !taken.ok()) {
      warn(at, "calls: " + taken.error().message);
    }
  }
  return calls;
}

void UpfReader::take_past(uint64_t at, ByteSpan payload, Segment& segment) {
  ByteReader in(payload);
  RunRecord run;
  run.time = in.u64();
  run.log = in.array();
  run.timeline = in.array();
  if (!in.ok()) return warn(at, "a past run of another length");
  segment.past.push_back(run);
}

std::vector<RunRecord> UpfReader::runs(const Segment& segment) const {
  std::vector<RunRecord> runs = segment.past;
  const auto part = [](ByteSpan record) {
    return record.empty() ? record : record.subspan(kRecordHeader);
  };
  const RunRecord last{segment.info.time, part(segment.log), part(segment.timeline)};
  if (!last.log.empty() || !last.timeline.empty()) runs.push_back(last);
  return runs;
}

std::string UpfReader::log(const RunRecord& run) {
  Bytes buffer;
  ByteSpan raw;
  if (run.log.empty() || !unpack(offset_of(run.log), run.log, buffer, raw)) return {};
  return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
}

Timeline UpfReader::timeline(const RunRecord& run) {
  Bytes buffer;
  ByteSpan raw;
  const uint64_t at = run.timeline.empty() ? 0 : offset_of(run.timeline);
  if (run.timeline.empty() || !unpack(at, run.timeline, buffer, raw)) return {};
  Result<Timeline> read = read_timeline(raw);
  if (read.ok()) return std::move(*read);
  warn(at, read.error().message);
  return {};
}

std::string UpfReader::log(const Segment& segment) {
  return segment.log.empty() ? "" : log(RunRecord{0, segment.log.subspan(kRecordHeader), {}});
}

Timeline UpfReader::timeline(const Segment& segment) {
  if (segment.timeline.empty()) return {};
  return timeline(RunRecord{0, {}, segment.timeline.subspan(kRecordHeader)});
}

}  // namespace uptier::profile
