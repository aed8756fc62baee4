#include "profile/upf/take_record.h"

#include "profile/base/checksum.h"

namespace uptier::profile {
namespace {

bool ascending(const auto& list) {
  for (size_t i = 1; i < list.size(); ++i) {
    if (!(list[i - 1] < list[i])) return false;
  }
  return true;
}

void take_user_data(UpfSegment& segment, const ForeignChunk& chunk, UpfWarnings& warnings) {
  if (chunk.content.size() < kIdbUserDataHead) {
    return warnings.add(chunk.offset, "user data: shorter than its head");
  }
  if (load<uint64_t>(chunk.content, 8) != 0) {
    return warnings.add(chunk.offset, "user data: a reserved field is not zero");
  }
  const auto type = segment.strings.find(load<uint32_t>(chunk.content, 0));
  const auto metadata = segment.strings.find(load<uint32_t>(chunk.content, 4));
  if (!type || !metadata)
    return warnings.add(chunk.offset, "user data: it names a string that is none");
  segment.user_data.push_back({*type, *metadata, chunk.content.subspan(kIdbUserDataHead)});
}

}  // namespace

bool is_whole(ByteSpan record) {
  return content_checksum(load<uint32_t>(record, 16), record.subspan(kRecordHeader)) ==
         load<uint64_t>(record, 24);
}

bool seals(ByteSpan record, const ForeignChunk& foreign) {
  if (!is_whole(record)) return false;
  ByteReader in(record.subspan(kRecordHeader));
  const uint64_t size = in.u64(), hash = in.u64();
  const ByteSpan chunk = foreign.chunk;
  return in.ok() && size == chunk.size() && !chunk.empty() &&
         hash == XXH3_64bits(chunk.data(), chunk.size());
}

bool is_index(ByteSpan payload, const UpfSegment& segment) {
  ByteReader in(payload);
  const uint32_t count = in.u32();
  in.u32();
  bool same = in.ok() && count <= in.rest() / 16 && count == segment.groups.size();
  for (uint32_t i = 0; same && i < count; ++i) {
    const uint64_t offset = in.u64();
    const uint32_t key = in.u32(), methods = in.u32();
    const UpfGroup& group = segment.groups[i];
    const ByteSpan head = group.record.subspan(kRecordHeader);
    same = offset == group.offset - segment.offset && key == load<uint32_t>(head, 0) &&
           methods == group.methods;
  }
  return same;
}

void take_run(uint64_t at, ByteSpan payload, UpfSegment& segment, UpfWarnings& warnings) {
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
    return warnings.add(at, "run: lists that do not fit, or are unordered");
  segment.info = std::move(info);
  segment.has_info = true;
}

void take_group(uint64_t at, uint16_t format, ByteSpan record, UpfSegment& segment,
                UpfWarnings& warnings) {
  const ByteSpan payload = record.subspan(kRecordHeader);
  if (payload.size() < 16) return warnings.add(at, "group: shorter than its head");
  const auto key = segment.strings.find(load<uint32_t>(payload, 0));
  const uint64_t module_key = format == 0 ? 0 : load<uint64_t>(payload, 8);
  segment.groups.push_back(
      {at, key.value_or(""), load<uint32_t>(payload, 4), format, module_key, record});
}

void take_past(uint64_t at, ByteSpan payload, UpfSegment& segment, UpfWarnings& warnings) {
  ByteReader in(payload);
  RunRecord run;
  run.time = in.u64();
  run.log = in.array();
  run.timeline = in.array();
  if (!in.ok()) return warnings.add(at, "a past run of another length");
  segment.past.push_back(run);
}

void take_end(uint64_t at, ByteSpan payload, UpfSegment& segment, UpfWarnings& warnings) {
  ByteReader in(payload);
  const uint64_t methods = in.u64(), groups = in.u64();
  segment.dropped = in.u64();
  segment.complete = true;
  uint64_t here = 0;
  for (const UpfGroup& group : segment.groups) here += group.methods;
  const bool same = in.ok() && groups == segment.groups.size() && methods == here;
  if (!same) {
    warnings.add(at, "the segment had " + std::to_string(methods) + " methods in " +
                         std::to_string(groups) + " groups, here are " + std::to_string(here) +
                         " in " + std::to_string(segment.groups.size()));
  }
}

void take_foreign(UpfSegment& segment, const ForeignChunk& chunk, UpfWarnings& warnings) {
  if (!chunk.known) return;
  segment.foreign_bytes += chunk.chunk.size();
  if (chunk.type == kIdbStringTable) {
    IdbDamage damage;
    Result<StringTable> strings = StringTable::read(chunk.content, damage);
    for (const std::string& what : damage) warnings.add(chunk.offset, "string table: " + what);
    if (!strings.ok()) warnings.add(chunk.offset, "string table: " + strings.error().message);
    // Later chunks refer to this table, not to the one before.
    segment.strings = strings.ok() ? std::move(*strings) : StringTable();
  } else if (chunk.type == kIdbInstrumentTable) {
    IdbDamage damage;
    Result<std::vector<Instrument>> read = read_instruments(chunk.content, segment.strings, damage);
    if (!read.ok()) return warnings.add(chunk.offset, "instruments: " + read.error().message);
    for (const std::string& what : damage) warnings.add(chunk.offset, "instruments: " + what);
    segment.instruments.insert(segment.instruments.end(), read->begin(), read->end());
  } else if (chunk.type == kIdbUserData) {
    take_user_data(segment, chunk, warnings);
  }
}

}  // namespace uptier::profile
