#include "profile/upf/read.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <new>

#include "profile/base/checksum.h"
#include "profile/upf/calls.h"
#include "profile/upf/inlined.h"

namespace uptier::profile {
namespace {

// Where the packed entries of a group begin.
size_t packed_at(uint16_t format) { return kRecordHeader + (format == 0 ? 8 : 16); }

bool ascending(const auto& list) {
  for (size_t i = 1; i < list.size(); ++i) {
    if (!(list[i - 1] < list[i])) return false;
  }
  return true;
}

}  // namespace

UpfReader::UpfReader(ByteSpan file) : file_(file) { scan(); }

void UpfReader::warn(uint64_t offset, const std::string& rule) {
  ++skipped_;
  if (warnings_.size() == kWarnings) return;
  warnings_.push_back("offset " + std::to_string(offset) + ": " + rule);
}

bool UpfReader::is_whole(ByteSpan record) {
  return content_checksum(load<uint32_t>(record, 16), record.subspan(kRecordHeader)) ==
         load<uint64_t>(record, 24);
}

void UpfReader::take_record(UpfKind kind, uint64_t at, ByteSpan record, Segment& segment) {
  const ByteSpan payload = record.subspan(kRecordHeader);
  switch (kind) {
    case UpfKind::kHeader: {
      const bool named = payload.size() >= 16 && load<uint64_t>(payload, 0) == kUpfName;
      const bool known = named && load<uint32_t>(payload, 8) == kUpfVersion;
      segment.headed = known;
      return known ? void() : warn(at, "the file header is of another format or version");
    }
    case UpfKind::kSeal:
      if (is_seal(record)) return take_foreign(segment);
      foreign_ = {};
      return warn(at, "the chunk before this seal is not the one that was sealed");
    case UpfKind::kRun: return take_run(at, payload, segment);
    case UpfKind::kLog: segment.log = record; return;
    case UpfKind::kTimeline: segment.timeline = record; return;
    case UpfKind::kShapes:
    case UpfKind::kCalls:
    case UpfKind::kOrder: segment.calls.push_back(record); return;
    case UpfKind::kInlined:
    case UpfKind::kInlinedSites: segment.inlined.push_back(record); return;
    case UpfKind::kPast: return take_past(at, payload, segment);
    case UpfKind::kIndex:
      return indexed_ ? void() : warn(at, "the index does not name the groups that are here");
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

// Whether an index names the groups that are here, and so confirms their keys.
bool UpfReader::is_index(ByteSpan payload, const Segment& segment) {
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
  return same;
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

// Whether a record is the seal of the chunk that waits.
bool UpfReader::is_seal(ByteSpan record) const {
  if (!is_whole(record)) return false;
  ByteReader in(record.subspan(kRecordHeader));
  const uint64_t size = in.u64(), hash = in.u64();
  const ByteSpan chunk = foreign_.chunk;
  return in.ok() && size == chunk.size() && !chunk.empty() &&
         hash == XXH3_64bits(chunk.data(), chunk.size());
}

// Takes the chunk in IREE's layout that waits.
void UpfReader::take_foreign(Segment& segment) {
  const Foreign chunk = foreign_;
  foreign_ = {};
  if (!chunk.known) return;
  segment.foreign_bytes += chunk.chunk.size();
  if (chunk.type == kIdbStringTable) {
    IdbDamage damage;
    Result<StringTable> strings = StringTable::read(chunk.content, damage);
    for (const std::string& what : damage) warn(chunk.offset, "string table: " + what);
    if (!strings.ok()) warn(chunk.offset, "string table: " + strings.error().message);
    // What follows names strings of this table, not of the one before.
    segment.strings = strings.ok() ? std::move(*strings) : StringTable();
  } else if (chunk.type == kIdbInstrumentTable) {
    IdbDamage damage;
    Result<std::vector<Instrument>> read = read_instruments(chunk.content, segment.strings, damage);
    if (!read.ok()) return warn(chunk.offset, "instruments: " + read.error().message);
    for (const std::string& what : damage) warn(chunk.offset, "instruments: " + what);
    segment.instruments.insert(segment.instruments.end(), read->begin(), read->end());
  } else if (chunk.type == kIdbUserData) {
    take_user_data(segment, chunk);
  }
}

void UpfReader::take_user_data(Segment& segment, const Foreign& chunk) {
  if (chunk.content.size() < kIdbUserDataHead) {
    return warn(chunk.offset, "user data: shorter than its head");
  }
  if (load<uint64_t>(chunk.content, 8) != 0) {
    return warn(chunk.offset, "user data: a reserved field is not zero");
  }
  const auto type = segment.strings.find(load<uint32_t>(chunk.content, 0));
  const auto metadata = segment.strings.find(load<uint32_t>(chunk.content, 4));
  if (!type || !metadata) return warn(chunk.offset, "user data: it names a string that is none");
  segment.user_data.push_back({*type, *metadata, chunk.content.subspan(kIdbUserDataHead)});
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
  const size_t unpacked = ZSTD_decompress(buffer.data(), size, body.data(), stored);
  // Not the file's fault: it must not be taken for damaged, and written anew without this part.
  if (ZSTD_getErrorCode(unpacked) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (unpacked != size) return refuse("packed: zstd does not unpack it");
  raw = buffer;
  return true;
}

bool UpfReader::unpack(const Group& group, ByteSpan& raw) {
  if (!is_whole(group.record)) {
    warn(group.offset, "the content checksum is wrong");
    return false;
  }
  return unpack(group.offset, group.record.subspan(packed_at(group.format)), unpacked_, raw);
}

void UpfReader::tell_count(const Group& group, uint32_t methods) {
  if (methods == group.methods) return;
  warn(group.offset, "group: " + std::to_string(methods) + " methods instead of " +
                         std::to_string(group.methods));
}

bool UpfReader::read(const Segment& segment, const Group& group, const Visitor& visit) {
  const bool whole = read_all(segment, group, visit);
  if (done_) done_(group.record);
  return whole;
}

bool UpfReader::read_all(const Segment& segment, const Group& group, const Visitor& visit) {
  ByteSpan raw;
  if (!unpack(group, raw)) return true;
  MethodView view;
  uint32_t methods = 0;
  for (; !raw.empty(); ++methods) {
    view.time = segment.info.time;
    const Status taken = take_entry(group.format, group.module_key, raw, words_, view);
    if (!taken.ok()) {
      warn(group.offset, "group: " + taken.error().message);
      return false;
    }
    const auto name = segment.strings.find(view.name);
    if (!name) warn(group.offset, "group: a name that is not in the string table");
    visit(view, name.value_or(""));
  }
  tell_count(group, methods);
  return true;
}

InlinedBodies UpfReader::inlined(const Segment& segment) {
  Profile sum;
  for (const ByteSpan record : segment.inlined) {
    ByteSpan raw;
    if (!unpack(offset_of(record), record.subspan(kRecordHeader), unpacked_, raw)) continue;
    Profile part;
    const bool blocks = load<uint16_t>(record, 4) == static_cast<uint16_t>(UpfKind::kInlined);
    Result<InlinedBodies> read = blocks ? read_inlined_part(raw) : read_inlined_site_part(raw);
    if (read.ok()) part.inlined = std::move(*read);
    if (!read.ok()) warn(offset_of(record), "inlined bodies: " + read.error().message);
    (void)merge(sum, std::move(part));
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
