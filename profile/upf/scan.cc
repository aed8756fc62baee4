// Finds the chunks of a file, and where to go on behind damage.
//
// A file may be cut off at any byte and another one stand behind it, so lengths are not believed
// before what they lead to is what comes next. Where it is not, the walk goes back into what it has
// jumped over: into a group, whose checksum is left to those who read it, and into a chunk in
// IREE's layout, which has none (scan_foreign.cc). It goes on at the first record of ours inside of
// it. Bytes that
// are walked over once more are counted, since damage may be nested; those that come to kRepeats
// times the file end that.
#include <algorithm>

#include "profile/base/checksum.h"
#include "profile/upf/read.h"

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
    case UpfKind::kInlined:
    case UpfKind::kInlinedSites:
    case UpfKind::kIndex:
    case UpfKind::kTimeline:
    case UpfKind::kPast:
    case UpfKind::kEnd: return h.version == 0;
  }
  return false;
}

bool is_possible(uint64_t content) {
  return content % 16 == 0 && content >= kRecordHeader - kIdbHeader && content <= kMaxContent;
}

}  // namespace

void UpfReader::scan() {
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

// Whether what stands here may stand behind what was taken last, by all that its header says.
bool UpfReader::follows(uint64_t at) const {
  const uint64_t rest = file_.size() - at;
  if (rest == 0) return !is_open();
  if (rest < kIdbHeader) return false;
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  if (!header.ok() || !header->fits(rest)) return false;
  if (!is_ours(at, *header)) {
    return !is_open() || (!is_trace(*header) && foreign_.chunk.empty());
  }
  const auto kind = static_cast<UpfKind>(header->type);
  const ByteSpan record = record_at(at);
  if (record.empty() || is_open() == (kind == UpfKind::kHeader)) return false;
  if (kind == UpfKind::kHeader) return true;
  const bool sealed = foreign_.chunk.empty() || (kind == UpfKind::kSeal && is_seal(record));
  return sealed && load<uint32_t>(record, 20) == next_sequence_;
}

// Returns where to go on if what was jumped over is not whole; otherwise `at`.
uint64_t UpfReader::go_back(uint64_t at) {
  if (is_open()) {
    if (const uint64_t inside = confirm_groups(at); inside != at) return inside;
  }
  if (foreign_.chunk.empty() || foreign_.searched) return at;
  foreign_.searched = true;
  if (const uint64_t inside = header_before(at); inside != at) return inside;
  const uint64_t end = foreign_.offset + foreign_.chunk.size();
  const uint64_t inside = next_chunk(foreign_.offset, end);
  if (inside == end || !may_repeat(end - inside)) return at;
  warn(foreign_.offset, "a chunk is cut off");
  note_gap(foreign_.offset, inside);
  foreign_ = {};
  return inside;
}

// The chunk that waits may be ours, as its seal here says, while the other tool's chunk before it
// has swallowed our header. Returns where that is; otherwise `at`.
uint64_t UpfReader::header_before(uint64_t at) {
  const bool theirs = !segments_.empty() && !segments_.back().ours;
  if (!theirs || last_foreign_ >= foreign_.offset || foreign_.offset < went_back_) return at;
  const ByteSpan record = record_at(at);
  if (record.empty() || !is_seal(record)) return at;
  const uint64_t inside = next_record(last_foreign_ + 1, foreign_.offset);
  if (inside == foreign_.offset || !may_repeat(at - inside)) return at;
  // What is there may turn out to be nothing; then the walk comes here again.
  went_back_ = foreign_.offset + 1;
  warn(last_foreign_, "a chunk is cut off");
  forget_behind(last_foreign_);
  Segment& segment = segments_.back();
  segment.bytes = segment.bytes.first(last_foreign_ - segment.offset);
  return inside;
}

// Leaves out the groups that are damaged, of those that no index has confirmed. Returns where to go
// on if another file begins inside of one; otherwise `at`.
uint64_t UpfReader::confirm_groups(uint64_t at) {
  Segment& segment = segments_.back();
  size_t kept = confirmed_;
  uint64_t inside = at;
  for (size_t i = confirmed_; i < segment.groups.size() && inside == at; ++i) {
    const Group group = segment.groups[i];
    if (is_whole(group.record)) {
      segment.groups[kept++] = group;
      continue;
    }
    warn(group.offset, "the content checksum is wrong");
    const uint64_t end = group.offset + group.record.size();
    const uint64_t found = may_repeat(at - group.offset) ? next_record(group.offset + 1, end) : end;
    if (found == end) continue;
    inside = found;
    forget_behind(group.offset);
    next_sequence_ = uint64_t{load<uint32_t>(group.record, 20)} + 1;
  }
  segment.groups.resize(kept);
  confirmed_ = kept;
  return inside;
}

// Leaves out of the last segment what stands behind a place: it is another file's.
void UpfReader::forget_behind(uint64_t offset) {
  Segment& segment = segments_.back();
  const auto behind = [&](ByteSpan part) { return part.data() > file_.data() + offset; };
  std::erase_if(segment.calls, behind);
  std::erase_if(segment.inlined, behind);
  std::erase_if(segment.past, [&](const RunRecord& run) { return behind(run.log); });
  std::erase_if(segment.instruments, [&](const Instrument& i) { return behind(i.payload); });
  std::erase_if(segment.user_data, [&](const UserData& d) { return behind(d.data); });
  for (ByteSpan* part : {&segment.log, &segment.timeline}) {
    if (behind(*part)) *part = {};
  }
  foreign_ = {};
}

// Counts bytes that are looked at once more; false once they are too many.
bool UpfReader::may_repeat(uint64_t bytes) {
  repeated_ += std::min<uint64_t>(bytes, file_.size());
  return repeated_ <= kRepeats * file_.size();
}

// Returns where the next chunk is to be looked for; the file's size to end.
uint64_t UpfReader::scan_chunk(uint64_t at) {
  if (file_.size() - at < kIdbHeader) {
    truncated_ = true;
    return file_.size();
  }
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  if (!header.ok()) {
    warn(at, header.error().message);
    return skip_damage(at);
  }
  if (is_trace(*header)) return scan_trace(at);
  return is_ours(at, *header) ? scan_record(at, *header) : scan_foreign(at, *header);
}

// Whether a record of a trace begins here, by its type: of the one that began at `start`.
bool UpfReader::is_of_trace(uint64_t at, uint64_t start) const {
  if (at > file_.size() || file_.size() - at < kIdbHeader) return false;
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  return header.ok() && is_trace(*header) && (at == start || header->type != kFirstTraceType);
}

// Takes the trace that begins here, up to the last of its records that is whole: who reads it tells
// what is damaged between them. Returns where to go on.
uint64_t UpfReader::scan_trace(uint64_t at) {
  uint64_t end = at, next = at;
  uint16_t last = 0;
  bool damaged = false;  // behind the last whole one
  while (next < file_.size()) {
    if (!is_of_trace(next, at)) {
      const bool chunk =
          file_.size() - next >= kIdbHeader && read_idb_header(file_.subspan(next)).ok();
      const uint64_t found = chunk ? next : next_record(next + 1);
      if (chunk || !is_of_trace(found, at)) break;
      next = found;
    }
    const ByteSpan record = may_repeat(0) ? record_at(next) : ByteSpan();
    damaged = !record.empty() && !is_whole(record);
    if (record.empty() || damaged) {
      (void)may_repeat(record.size());
      next = next_record(next + 1);
      continue;
    }
    last = load<uint16_t>(record, 4);
    next = end = next + record.size();
  }
  if (damaged) warn(end, "trace: the content checksum is wrong");
  if (end != at) traces_.push_back(file_.subspan(at, end - at));
  truncated_ = truncated_ || last != static_cast<uint16_t>(RecordKind::kEnd);
  return next;
}

uint64_t UpfReader::scan_record(uint64_t at, const IdbHeader& header) {
  const uint64_t rest = file_.size() - at;
  if (rest < kRecordHeader) {
    truncated_ = true;
    return file_.size();
  }
  if (!is_record(at)) {
    warn(at, "the header checksum is wrong");
    return next_record(at + 1);
  }
  if (!is_possible(header.content)) {
    warn(at, "a record of " + std::to_string(header.content) + " bytes is not possible");
    return next_record(at + 1);
  }
  if (header.size() > rest) {
    truncated_ = true;
    const uint64_t next = next_record(at + 1);
    if (next != file_.size()) warn(at, "a record is cut off");
    return next;
  }
  const ByteSpan record = file_.subspan(at, header.size());
  const auto kind = static_cast<UpfKind>(header.type);
  const uint32_t sequence = load<uint32_t>(record, 20);
  Segment& segment = segment_at(at, kind == UpfKind::kHeader, sequence);
  next_sequence_ = uint64_t{sequence} + 1;
  if (kind == UpfKind::kGroup && is_known(header)) {
    take_group(at, header.version, record, segment);
    return at + header.size();
  }
  if (!is_whole(record)) {
    warn(at, "the content checksum is wrong");
    const uint64_t end = at + header.size();
    return may_repeat(header.size()) ? next_record(at + 1, end) : end;
  }
  if (is_known(header)) return scan_whole(kind, at, record);
  ++unknown_;
  return at + header.size();
}

// An index says which groups there are. One that names others is another file's, or some are
// damaged; and without one nothing else says whether their keys are right.
uint64_t UpfReader::scan_whole(UpfKind kind, uint64_t at, ByteSpan record) {
  Segment& segment = segments_.back();
  const ByteSpan payload = record.subspan(kRecordHeader);
  if (kind == UpfKind::kIndex) indexed_ = is_index(payload, segment);
  const bool doubtful = (kind == UpfKind::kIndex || kind == UpfKind::kEnd) && !indexed_;
  if (doubtful) {
    if (const uint64_t inside = confirm_groups(at); inside != at) return inside;
  }
  take_record(kind, at, record, segment);
  return at + record.size();
}

// Whether a record of ours starts here: its header checksum says so.
bool UpfReader::is_record(uint64_t at) const {
  if (at > file_.size() || file_.size() - at < kRecordHeader) return false;
  const ByteSpan here = file_.subspan(at);
  const bool magic = load<uint32_t>(here, 0) == kIdbMagic;
  return magic && load<uint32_t>(here, 16) == header_checksum(here);
}

// Returns the record of ours that starts here, if its header is right and possible and all of it is
// there; else nothing. Only such a record is looked into.
ByteSpan UpfReader::record_at(uint64_t at) const {
  if (!is_record(at)) return {};
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  const bool whole = is_possible(header->content) && header->fits(file_.size() - at);
  return whole ? file_.subspan(at, header->size()) : ByteSpan();
}

// The content of a file header is open in IREE's database: ours has our name or our checksum.
bool UpfReader::is_ours(uint64_t at, const IdbHeader& h) const {
  if (h.type != kIdbFileHeader) return h.type >= kFirstUpfType && h.type <= kLastUpfType;
  if (h.content == 0) return false;
  const bool room = file_.size() - at >= kRecordHeader + sizeof kUpfName;
  return is_record(at) || (room && load<uint64_t>(file_, at + kRecordHeader) == kUpfName);
}

// Returns the place of the first record from a place on, whatever multiple it is of; `end` if there
// is none before it.
uint64_t UpfReader::next_record(uint64_t from, uint64_t end) const {
  end = std::min<uint64_t>(end, file_.size());
  const std::string_view all(reinterpret_cast<const char*>(file_.data()), file_.size());
  const std::string_view text = all.substr(0, std::min<uint64_t>(end + 3, file_.size()));
  for (size_t at = text.find("IIDB", from); at < end; at = text.find("IIDB", at + 1)) {
    if (is_record(at)) return at;
  }
  return end;
}

bool UpfReader::is_open() const {
  return !segments_.empty() && segments_.back().ours && !segments_.back().complete;
}

// The last segment gets no more.
void UpfReader::close_segment() {
  if (segments_.empty()) return;
  Segment& segment = segments_.back();
  truncated_ = truncated_ || is_open();
  const bool named = !segment.instruments.empty() || !segment.user_data.empty();
  if (segment.ours || !named) return;
  // It counts once, as a run does.
  segment.info.uploads = {{0, XXH3_64bits(segment.bytes.data(), segment.bytes.size())}};
  segment.has_info = true;
}

UpfReader::Segment& UpfReader::new_segment(uint64_t at, bool ours) {
  close_segment();
  segments_.emplace_back();
  segments_.back().offset = at;
  segments_.back().ours = ours;
  indexed_ = false;
  confirmed_ = 0;
  next_sequence_ = 0;
  return segments_.back();
}

// Returns the segment that a record belongs to, which is a new one at a header. What follows an end
// without a header belongs to a segment that has lost it.
UpfReader::Segment& UpfReader::segment_at(uint64_t at, bool starts, uint64_t sequence) {
  const bool lost = !is_open() || sequence < next_sequence_;
  if (starts || lost) {
    if (!starts) warn(at, "a segment has lost its header");
    new_segment(at, true);
    if (!starts) next_sequence_ = sequence;
  }
  if (sequence > next_sequence_) {
    warn(at, "records " + std::to_string(next_sequence_) + ".." + std::to_string(sequence - 1) +
                 " are missing");
  }
  return segments_.back();
}

}  // namespace uptier::profile
