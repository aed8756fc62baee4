#include "profile/upf/read.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <new>

#include "profile/upf/calls.h"
#include "profile/upf/inlined.h"
#include "profile/upf/take_record.h"

namespace uptier::profile {
namespace {

// Returns the position of the packed entries of a group.
size_t packed_at(uint16_t format) { return kRecordHeader + (format == 0 ? 8 : 16); }

void learn(const MethodKey& key, bool first, GroupKeys& keys) {
  keys.ascending = keys.ascending && (first || keys.last <= key);
  if (first) keys.first = key;
  keys.last = key;
}

}  // namespace

UpfReader::UpfReader(ByteSpan file) : file_(file), parts_(scan_upf(file, warnings_)) {}

// Returns the bytes of a packed part, either in place or in `buffer`.
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
  // Not the file's fault: it must not count as damaged, or it would be rewritten without this part.
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

void UpfReader::read(const Segment& segment, const Group& group, const KeyRange& wanted,
                     GroupKeys& keys, const Visitor& visit,
                     const std::function<void(std::string_view)>& pass_over) {
  read_some(segment, group, wanted, keys, visit, pass_over);
  if (done_) done_(group.record);
}

void UpfReader::read_some(const Segment& segment, const Group& group, const KeyRange& wanted,
                          GroupKeys& keys, const Visitor& visit,
                          const std::function<void(std::string_view)>& pass_over) {
  const bool again = std::exchange(keys.read, true);
  const std::optional<MethodKey> end = wanted.end;
  ByteSpan raw;
  // Its checksum is checked each time, since the file may have changed meanwhile; then the keys
  // learned earlier need not be true.
  if (!unpack(group, raw)) {
    keys.stop = 0;
    return;
  }
  const size_t size = raw.size();
  const auto name_of = [&](uint32_t id) { return segment.strings.find(id); };
  const uint64_t from = wanted.from == keys.end ? keys.behind : keys.start;
  if (from > size) return warn(group.offset, "group: it became shorter while it was read");
  raw = raw.subspan(from);
  bool started = false;
  uint32_t methods = 0;
  MethodView view;
  for (; !raw.empty(); ++methods) {
    const uint64_t at = size - raw.size();
    if (at >= keys.stop) return;
    const std::optional<EntryHead> head =
        group.format == kUpfEntries ? head_of(group.module_key, raw) : std::nullopt;
    const bool before = head && head->key < wanted.from;
    if (!before && !std::exchange(started, true)) keys.start = at;
    if (head && !wanted.contains(head->key)) {
      // All methods before this one lie before the original end of the range, which may be smaller
      // by now.
      const bool first_behind = !before && end && keys.end != *end;
      if (first_behind) keys.end = *end, keys.behind = at;
      if (again && !before) return;
      if (!again) learn(head->key, methods == 0, keys);
      pass_over(name_of(head->name).value_or(""));
      raw = raw.subspan(head->size);
      continue;
    }
    view.time = segment.info.time;
    const Status taken = take_entry(group.format, group.module_key, raw, words_, view);
    if (!taken.ok()) {
      keys.stop = at;
      return warn(group.offset, "group: " + taken.error().message);
    }
    if (!again) learn(view.key, methods == 0, keys);
    const auto name = name_of(view.name);
    if (!name) warn(group.offset, "group: a name that is not in the string table");
    wanted.contains(view.key) ? visit(view, name.value_or("")) : pass_over(name.value_or(""));
  }
  if (!again) tell_count(group, methods);
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
