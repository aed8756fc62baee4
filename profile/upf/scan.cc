#include "profile/upf/scan.h"

#include <algorithm>
#include <utility>

#include "profile/base/checksum.h"
#include "profile/upf/chunk_finder.h"
#include "profile/upf/take_record.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kRepeats = 16;

bool is_known(const IdbHeader& h) {
  switch (static_cast<UpfKind>(h.type)) {
    case UpfKind::kGroup: return h.version <= kUpfEntries;
    case UpfKind::kHeader:
    case UpfKind::kSeal:
    case UpfKind::kRun:
    case UpfKind::kLog:
    case UpfKind::kShapes:
    case UpfKind::kCalls:
    case UpfKind::kOrder:
    case UpfKind::kTime:
    case UpfKind::kInlined:
    case UpfKind::kInlinedSites:
    case UpfKind::kIndex:
    case UpfKind::kTimeline:
    case UpfKind::kPast:
    case UpfKind::kEnd: return h.version == 0;
  }
  return false;
}

class UpfScanner {
 public:
  UpfScanner(ByteSpan file, UpfWarnings& warnings)
      : file_(file), finder_(file), warnings_(warnings) {}

  UpfParts run() {
    scan();
    return std::move(parts_);
  }

 private:
  void scan();
  bool follows(uint64_t at) const;
  uint64_t go_back(uint64_t at);
  uint64_t header_before(uint64_t at);
  uint64_t confirm_groups(uint64_t at);
  void forget_behind(uint64_t offset);
  bool may_repeat(uint64_t bytes);
  uint64_t scan_chunk(uint64_t at);
  uint64_t scan_record(uint64_t at, const IdbHeader& header);
  uint64_t scan_whole(UpfKind kind, uint64_t at, ByteSpan record);
  void take_record(UpfKind kind, uint64_t at, ByteSpan record, UpfSegment& segment);
  bool is_of_trace(uint64_t at, uint64_t start) const;
  uint64_t scan_trace(uint64_t at);
  bool is_open() const;
  void close_segment();
  UpfSegment& new_segment(uint64_t at, bool ours);
  UpfSegment& segment_at(uint64_t at, bool starts, uint64_t sequence);

  // Chunks of other tools.
  uint64_t skip_damage(uint64_t at);
  void note_gap(uint64_t at, uint64_t next);
  uint64_t scan_foreign(uint64_t at, const IdbHeader& header);
  UpfSegment& foreign_segment();
  void settle_foreign(uint64_t at);
  void take_waiting(UpfSegment& segment);

  ByteSpan file_;
  ChunkFinder finder_;
  UpfWarnings& warnings_;
  UpfParts parts_;
  uint64_t next_sequence_ = 0;
  uint64_t repeated_ = 0;          // bytes that were scanned again
  ForeignChunk foreign_;           // waits for the chunk after it
  uint64_t gap_end_ = UINT64_MAX;  // of damage in other tools' chunks
  uint64_t went_back_ = 0;         // start of the search for header_before(): earlier chunks were
                                   // searched already
  uint64_t last_foreign_ = 0;      // start of the last chunk of the last segment of another tool
  size_t confirmed_ = 0;           // groups of the last segment that are known to be whole
  bool indexed_ = false;           // the last segment's groups match its index
};

void UpfScanner::scan() {
  for (uint64_t at = 0;;) {
    const uint64_t back = follows(at) ? at : go_back(at);
    if (back != at) {
      at = back;
      continue;
    }
    settle_foreign(at);
    if (at == file_.size()) break;
    at = scan_chunk(at);
  }
  close_segment();
}

// Returns whether the chunk here can follow the previous one, judging by its whole header.
bool UpfScanner::follows(uint64_t at) const {
  const uint64_t rest = file_.size() - at;
  if (rest == 0) return !is_open();
  if (rest < kIdbHeader) return false;
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  if (!header.ok() || !header->fits(rest)) return false;
  if (!finder_.is_ours(at, *header)) {
    return !is_open() || (!is_trace(*header) && foreign_.chunk.empty());
  }
  const auto kind = static_cast<UpfKind>(header->type);
  const ByteSpan record = finder_.record_at(at);
  if (record.empty() || is_open() == (kind == UpfKind::kHeader)) return false;
  if (kind == UpfKind::kHeader) return true;
  const bool sealed = foreign_.chunk.empty() || (kind == UpfKind::kSeal && seals(record, foreign_));
  return sealed && load<uint32_t>(record, 20) == next_sequence_;
}

// Returns the position to continue at if a skipped chunk is not whole; otherwise `at`.
uint64_t UpfScanner::go_back(uint64_t at) {
  if (is_open()) {
    if (const uint64_t inside = confirm_groups(at); inside != at) return inside;
  }
  if (foreign_.chunk.empty() || foreign_.searched) return at;
  foreign_.searched = true;
  if (const uint64_t inside = header_before(at); inside != at) return inside;
  const uint64_t end = foreign_.offset + foreign_.chunk.size();
  const uint64_t inside = finder_.next_chunk(foreign_.offset, end, is_open());
  if (inside == end || !may_repeat(end - inside)) return at;
  warnings_.add(foreign_.offset, "a chunk is cut off");
  note_gap(foreign_.offset, inside);
  foreign_ = {};
  return inside;
}

// The waiting chunk may be ours, as its seal at `at` says, if the other tool's chunk before it has
// swallowed our header. Returns the position of the header; otherwise `at`.
uint64_t UpfScanner::header_before(uint64_t at) {
  const bool theirs = !parts_.segments.empty() && !parts_.segments.back().ours;
  if (!theirs || last_foreign_ >= foreign_.offset || foreign_.offset < went_back_) return at;
  const ByteSpan record = finder_.record_at(at);
  if (record.empty() || !seals(record, foreign_)) return at;
  const uint64_t inside = finder_.next_record(last_foreign_ + 1, foreign_.offset);
  if (inside == foreign_.offset || !may_repeat(at - inside)) return at;
  // If there turns out to be nothing, the scan comes here again.
  went_back_ = foreign_.offset + 1;
  warnings_.add(last_foreign_, "a chunk is cut off");
  forget_behind(last_foreign_);
  UpfSegment& segment = parts_.segments.back();
  segment.bytes = segment.bytes.first(last_foreign_ - segment.offset);
  return inside;
}

// Removes damaged groups that no index has confirmed. Returns the position to continue at if
// another file begins inside of one; otherwise `at`.
uint64_t UpfScanner::confirm_groups(uint64_t at) {
  UpfSegment& segment = parts_.segments.back();
  size_t kept = confirmed_;
  uint64_t inside = at;
  for (size_t i = confirmed_; i < segment.groups.size() && inside == at; ++i) {
    const UpfGroup group = segment.groups[i];
    if (is_whole(group.record)) {
      segment.groups[kept++] = group;
      continue;
    }
    warnings_.add(group.offset, "the content checksum is wrong");
    const uint64_t end = group.offset + group.record.size();
    const uint64_t found =
        may_repeat(at - group.offset) ? finder_.next_record(group.offset + 1, end) : end;
    if (found == end) continue;
    inside = found;
    forget_behind(group.offset);
    next_sequence_ = uint64_t{load<uint32_t>(group.record, 20)} + 1;
  }
  segment.groups.resize(kept);
  confirmed_ = kept;
  return inside;
}

// Removes parts of the last segment after a position: they belong to another file.
void UpfScanner::forget_behind(uint64_t offset) {
  UpfSegment& segment = parts_.segments.back();
  const auto behind = [&](ByteSpan part) { return part.data() > file_.data() + offset; };
  std::erase_if(segment.calls, behind);
  std::erase_if(segment.inlined, behind);
  std::erase_if(segment.past, [&](const RunRecord& run) { return behind(run.log); });
  std::erase_if(segment.instruments, [&](const Instrument& i) { return behind(i.payload); });
  std::erase_if(segment.user_data, [&](const UpfUserData& d) { return behind(d.data); });
  for (ByteSpan* part : {&segment.log, &segment.timeline}) {
    if (behind(*part)) *part = {};
  }
  foreign_ = {};
}

// Counts bytes that are scanned again; returns false if there are too many.
bool UpfScanner::may_repeat(uint64_t bytes) {
  repeated_ += std::min<uint64_t>(bytes, file_.size());
  return repeated_ <= kRepeats * file_.size();
}

// Returns the position of the next chunk; the file's size to end the scan.
uint64_t UpfScanner::scan_chunk(uint64_t at) {
  if (file_.size() - at < kIdbHeader) {
    parts_.truncated = true;
    return file_.size();
  }
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  if (!header.ok()) {
    warnings_.add(at, header.error().message);
    return skip_damage(at);
  }
  if (is_trace(*header)) return scan_trace(at);
  return finder_.is_ours(at, *header) ? scan_record(at, *header) : scan_foreign(at, *header);
}

// Returns whether a record here belongs, by its type, to the trace that began at `start`.
bool UpfScanner::is_of_trace(uint64_t at, uint64_t start) const {
  if (at > file_.size() || file_.size() - at < kIdbHeader) return false;
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  return header.ok() && is_trace(*header) && (at == start || header->type != kFirstTraceType);
}

// Takes the trace that begins here, up to its last whole record: the reader of the trace reports
// damage between the records. Returns the position to continue at.
uint64_t UpfScanner::scan_trace(uint64_t at) {
  uint64_t end = at, next = at;
  uint16_t last = 0;
  bool damaged = false;  // after the last whole record
  while (next < file_.size()) {
    if (!is_of_trace(next, at)) {
      const bool chunk =
          file_.size() - next >= kIdbHeader && read_idb_header(file_.subspan(next)).ok();
      const uint64_t found = chunk ? next : finder_.next_record(next + 1);
      if (chunk || !is_of_trace(found, at)) break;
      next = found;
    }
    const ByteSpan record = may_repeat(0) ? finder_.record_at(next) : ByteSpan();
    damaged = !record.empty() && !is_whole(record);
    if (record.empty() || damaged) {
      (void)may_repeat(record.size());
      next = finder_.next_record(next + 1);
      continue;
    }
    last = load<uint16_t>(record, 4);
    next = end = next + record.size();
  }
  if (damaged) warnings_.add(end, "trace: the content checksum is wrong");
  if (end != at) parts_.traces.push_back(file_.subspan(at, end - at));
  parts_.truncated = parts_.truncated || last != static_cast<uint16_t>(RecordKind::kEnd);
  return next;
}

uint64_t UpfScanner::scan_record(uint64_t at, const IdbHeader& header) {
  const uint64_t rest = file_.size() - at;
  if (rest < kRecordHeader) {
    parts_.truncated = true;
    return file_.size();
  }
  if (!finder_.is_record(at)) {
    warnings_.add(at, "the header checksum is wrong");
    return finder_.next_record(at + 1);
  }
  if (!is_possible_content(header.content)) {
    warnings_.add(at, "a record of " + std::to_string(header.content) + " bytes is not possible");
    return finder_.next_record(at + 1);
  }
  if (header.size() > rest) {
    parts_.truncated = true;
    const uint64_t next = finder_.next_record(at + 1);
    if (next != file_.size()) warnings_.add(at, "a record is cut off");
    return next;
  }
  const ByteSpan record = file_.subspan(at, header.size());
  const auto kind = static_cast<UpfKind>(header.type);
  const uint32_t sequence = load<uint32_t>(record, 20);
  UpfSegment& segment = segment_at(at, kind == UpfKind::kHeader, sequence);
  next_sequence_ = uint64_t{sequence} + 1;
  if (kind == UpfKind::kGroup && is_known(header)) {
    take_group(at, header.version, record, segment, warnings_);
    return at + header.size();
  }
  if (!is_whole(record)) {
    warnings_.add(at, "the content checksum is wrong");
    const uint64_t end = at + header.size();
    return may_repeat(header.size()) ? finder_.next_record(at + 1, end) : end;
  }
  if (is_known(header)) return scan_whole(kind, at, record);
  ++parts_.unknown;
  return at + header.size();
}

// An index lists the groups. If it lists others, it belongs to another file, or some groups are
// damaged; and without an index nothing else confirms their keys.
uint64_t UpfScanner::scan_whole(UpfKind kind, uint64_t at, ByteSpan record) {
  UpfSegment& segment = parts_.segments.back();
  const ByteSpan payload = record.subspan(kRecordHeader);
  if (kind == UpfKind::kIndex) indexed_ = is_index(payload, segment);
  const bool doubtful = (kind == UpfKind::kIndex || kind == UpfKind::kEnd) && !indexed_;
  if (doubtful) {
    if (const uint64_t inside = confirm_groups(at); inside != at) return inside;
  }
  take_record(kind, at, record, segment);
  return at + record.size();
}

void UpfScanner::take_record(UpfKind kind, uint64_t at, ByteSpan record, UpfSegment& segment) {
  const ByteSpan payload = record.subspan(kRecordHeader);
  switch (kind) {
    case UpfKind::kHeader: {
      const bool named = payload.size() >= 16 && load<uint64_t>(payload, 0) == kUpfName;
      const bool known = named && load<uint32_t>(payload, 8) == kUpfVersion;
      segment.headed = known;
      return known ? void() : warnings_.add(at, "the file header is of another format or version");
    }
    case UpfKind::kSeal:
      if (seals(record, foreign_)) return take_waiting(segment);
      foreign_ = {};
      return warnings_.add(at, "the chunk before this seal is not the one that was sealed");
    case UpfKind::kRun: return take_run(at, payload, segment, warnings_);
    case UpfKind::kLog: segment.log = record; return;
    case UpfKind::kTimeline: segment.timeline = record; return;
    case UpfKind::kShapes:
    case UpfKind::kCalls:
    case UpfKind::kOrder:
    case UpfKind::kTime: segment.calls.push_back(record); return;
    case UpfKind::kInlined:
    case UpfKind::kInlinedSites: segment.inlined.push_back(record); return;
    case UpfKind::kPast: return take_past(at, payload, segment, warnings_);
    case UpfKind::kIndex:
      return indexed_ ? void()
                      : warnings_.add(at, "the index does not name the groups that are here");
    case UpfKind::kEnd: return take_end(at, payload, segment, warnings_);
    case UpfKind::kGroup: return;
  }
}

// Skips bytes that cannot be read. Returns the position to continue at.
uint64_t UpfScanner::skip_damage(uint64_t at) {
  const uint64_t next = finder_.next_chunk(at, file_.size(), is_open());
  note_gap(at, next);
  return next;
}

// Skips bytes of another tool's database, which continues after them. If they were a string table,
// later chunks do not refer to the previous table.
void UpfScanner::note_gap(uint64_t at, uint64_t next) {
  const bool theirs = !parts_.segments.empty() && !parts_.segments.back().ours;
  if (!theirs || is_open()) return;
  gap_end_ = next;
  const ByteSpan gap = file_.subspan(at, next - at);
  IdbDamage damage;
  const bool headed = gap.size() > kIdbHeader;
  const Result<StringTable> strings =
      StringTable::read(gap.subspan(headed ? kIdbHeader : 0), damage);
  const bool were_strings = headed && strings.ok() && damage.empty() && strings->size() != 0;
  if (were_strings) parts_.segments.back().strings = {};
}

// Takes the waiting chunk of another tool.
void UpfScanner::take_waiting(UpfSegment& segment) {
  take_foreign(segment, std::exchange(foreign_, {}), warnings_);
}

uint64_t UpfScanner::scan_foreign(uint64_t at, const IdbHeader& header) {
  if (!header.fits(file_.size() - at)) {
    warnings_.add(at,
                  "a chunk of " + std::to_string(header.content) + " bytes reaches past the file");
    return skip_damage(at);
  }
  if (!is_known_foreign(header)) ++parts_.unknown;
  foreign_ = {at,
              header.type,
              is_known_foreign(header),
              false,
              file_.subspan(at, header.size()),
              file_.subspan(at + kIdbHeader, header.content)};
  return at + header.size();
}

// Decides about the waiting chunk in IREE's layout, by the chunk after it. If our segment continues
// (the chunk's seal may be damaged), it belongs to that; otherwise to a segment of another tool. A
// seal decides by itself. If our segment is cut off here and no other tool's chunk follows, the
// chunk is ours without its seal, and is dropped.
void UpfScanner::settle_foreign(uint64_t at) {
  if (foreign_.chunk.empty()) return;
  const bool any = file_.size() - at >= kIdbHeader;
  const Result<IdbHeader> header =
      any ? read_idb_header(file_.subspan(at)) : Result<IdbHeader>(IdbHeader{});
  const bool record = any && header.ok() && finder_.is_record(at) && header->type >= kFirstUpfType;
  const bool goes_on = is_open() && record && load<uint32_t>(file_, at + 20) >= next_sequence_;
  if (goes_on && static_cast<UpfKind>(header->type) == UpfKind::kSeal) return;
  const bool others = any && header.ok() && !is_trace(*header) && !finder_.is_ours(at, *header);
  const bool cut = is_open() && !goes_on && !others;
  if (cut) {
    foreign_ = {};
    return;
  }
  take_waiting(goes_on ? parts_.segments.back() : foreign_segment());
}

// Returns the segment of the waiting chunk: adjacent chunks are one segment, up to the next file
// header.
UpfSegment& UpfScanner::foreign_segment() {
  const auto ends_here = [&](const UpfSegment& s) {
    return s.offset + s.bytes.size() == foreign_.offset || gap_end_ == foreign_.offset;
  };
  const bool goes_on = !parts_.segments.empty() && !parts_.segments.back().ours &&
                       foreign_.type != kIdbFileHeader && ends_here(parts_.segments.back());
  UpfSegment& segment = goes_on ? parts_.segments.back() : new_segment(foreign_.offset, false);
  last_foreign_ = foreign_.offset;
  segment.bytes =
      file_.subspan(segment.offset, foreign_.offset + foreign_.chunk.size() - segment.offset);
  return segment;
}

bool UpfScanner::is_open() const {
  return !parts_.segments.empty() && parts_.segments.back().ours &&
         !parts_.segments.back().complete;
}

// Completes the last segment.
void UpfScanner::close_segment() {
  if (parts_.segments.empty()) return;
  UpfSegment& segment = parts_.segments.back();
  parts_.truncated = parts_.truncated || is_open();
  const bool named = !segment.instruments.empty() || !segment.user_data.empty();
  if (segment.ours || !named) return;
  // It counts once, as a run does.
  segment.info.uploads = {{0, XXH3_64bits(segment.bytes.data(), segment.bytes.size())}};
  segment.has_info = true;
}

UpfSegment& UpfScanner::new_segment(uint64_t at, bool ours) {
  close_segment();
  parts_.segments.emplace_back();
  parts_.segments.back().offset = at;
  parts_.segments.back().ours = ours;
  indexed_ = false;
  confirmed_ = 0;
  next_sequence_ = 0;
  return parts_.segments.back();
}

// Returns the segment of a record; a header begins a new one. A record after an end, without a
// header, belongs to a segment that has lost its header.
UpfSegment& UpfScanner::segment_at(uint64_t at, bool starts, uint64_t sequence) {
  const bool lost = !is_open() || sequence < next_sequence_;
  if (starts || lost) {
    if (!starts) warnings_.add(at, "a segment has lost its header");
    new_segment(at, true);
    if (!starts) next_sequence_ = sequence;
  }
  if (sequence > next_sequence_) {
    warnings_.add(at, "records " + std::to_string(next_sequence_) + ".." +
                          std::to_string(sequence - 1) + " are missing");
  }
  return parts_.segments.back();
}

}  // namespace

UpfParts scan_upf(ByteSpan file, UpfWarnings& warnings) { return UpfScanner(file, warnings).run(); }

}  // namespace uptier::profile
