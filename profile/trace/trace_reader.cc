#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "profile/base/checksum.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

constexpr uint16_t kFirstRecordType = 0x5500;
constexpr uint16_t kLastRecordType = 0x55ff;
constexpr uint16_t kLastEventType = 0x553f;  // those after are of profile files (upf/format.h)

bool known_event(RecordKind kind, uint16_t version) {
  return version == 0 && kind >= RecordKind::kProvenance && kind <= RecordKind::kFirstCall;
}

constexpr uint64_t kRepeats = 16;

// Returns whether as much of a chunk's magic as there is, is right: a cut trace still begins one.
bool begins_chunk(ByteSpan here) {
  const size_t there = std::min(here.size(), sizeof kTraceMagic);
  return there == 0 || std::memcmp(here.data(), &kTraceMagic, there) == 0;
}

// Returns whether a record of a trace begins here, by its header and its checksum.
bool is_event_record(ByteSpan here) {
  if (here.size() < kRecordHeader || load<uint32_t>(here, 0) != kTraceMagic) return false;
  const uint16_t type = load<uint16_t>(here, 4);
  const bool ours = type >= kFirstRecordType && type <= kLastEventType;
  return ours && load<uint32_t>(here, 16) == header_checksum(here);
}

}  // namespace

struct TraceReader::Chunk {
  uint16_t type;
  uint16_t version;
  ByteSpan bytes;  // header included
  bool ours() const { return type >= kFirstRecordType && type <= kLastRecordType; }
  RecordKind kind() const { return static_cast<RecordKind>(type); }
  ByteSpan payload() const { return bytes.subspan(kRecordHeader); }
};

bool TraceReader::next() {
  event_.reset();
  while (state_ == State::kOpen) {
    const std::optional<Chunk> chunk = next_chunk();
    if (!chunk) continue;
    if (!chunk->ours()) {
      ++skipped_;
    } else if (check_record(*chunk) && read_record(*chunk)) {
      return true;
    }
  }
  return false;
}

// Takes the next chunk off the file. The checks are in this order so that a damaged length of ours,
// and what is too short for a chunk and no beginning of one, are called corrupt, not truncated.
std::optional<TraceReader::Chunk> TraceReader::next_chunk() {
  offset_ = at_;
  const size_t rest = file_.size() - at_;
  const auto cut = [this, rest](uint64_t needed) {
    const std::string rule = rest == 0 ? "the file ends without end marker"
                                       : "the file ends inside a chunk: " + std::to_string(rest) +
                                             " of " + std::to_string(needed) + " bytes";
    // A chunk may also say more than there is, or its end be missing before what follows.
    if (!go_on_behind(rule)) stop(State::kTruncated, rule);
    return std::nullopt;
  };
  const ByteSpan here = file_.subspan(at_);
  if (!begins_chunk(here)) return corrupt("the magic is not IIDB"), std::nullopt;
  // The type is there before the whole of a chunk's header is.
  if (at_ == 0 && rest >= 6 &&
      load<uint16_t>(here, 4) != static_cast<uint16_t>(RecordKind::kFileHeader)) {
    const char* rule = "the file does not start with a file header";
    // It may have lost it; what is here is looked at then.
    if (!resumes_ || !is_event_record(here)) return corrupt(rule), std::nullopt;
    tell_damage(rule);
  }
  if (rest < kChunkHeader) return cut(kChunkHeader);
  Chunk chunk{load<uint16_t>(here, 4), load<uint16_t>(here, 6), {}};
  const uint64_t length = load<uint64_t>(here, 8);
  if (chunk.ours()) {
    if (rest < kRecordHeader) return cut(kRecordHeader);
    if (load<uint32_t>(here, 16) != header_checksum(here)) {
      return corrupt("the header checksum is wrong"), std::nullopt;
    }
    const bool shaped = length % 16 == 0 && length >= kRecordHeader - kChunkHeader;
    if (!shaped || length > kMaxContent) {
      return corrupt("a record of " + std::to_string(length) + " bytes is not possible"),
             std::nullopt;
    }
  }
  if (length > rest - kChunkHeader) return cut(length);
  const uint64_t size = (kChunkHeader + length + 15) & ~uint64_t{15};
  if (size > rest) return cut(size);
  chunk.bytes = here.first(size);
  at_ += size;
  return chunk;
}

bool TraceReader::check_record(const Chunk& chunk) {
  const uint64_t expected = load<uint64_t>(chunk.bytes, 24);
  if (content_checksum(load<uint32_t>(chunk.bytes, 16), chunk.payload()) != expected) {
    // The length may be another record's work, or what follows was cut: records inside are looked
    // for, as long as that does not come to many times the file.
    repeated_ += chunk.bytes.size();
    const char* rule = "the content checksum is wrong";
    return repeated_ <= kRepeats * file_.size() ? corrupt(rule) : leave_out(rule);
  }
  sequence_ = load<uint32_t>(chunk.bytes, 20);
  return check_sequence();
}

// Who resumes passes over records that are missing, and leaves out those that come again.
bool TraceReader::check_sequence() {
  const bool follows = sequence_ == next_sequence_;
  const bool passed = sequence_ < next_sequence_;
  const std::string rule =
      "sequence " + std::to_string(sequence_) + " instead of " + std::to_string(next_sequence_);
  if (!follows && !resumes_) return stop(State::kCorrupt, rule);
  // After damage, what is missing is that.
  const bool told = std::exchange(jumped_, false) && !passed;
  if (!follows && !told) tell_damage(rule);
  if (!passed) next_sequence_ = sequence_ + 1;
  return !passed;
}

// Takes a broken rule as damage and goes on at the next record, if there is one: after where the
// chunk at hand begins.
bool TraceReader::go_on_behind(const std::string& rule) {
  if (!resumes_) return false;
  const auto* first = reinterpret_cast<const char*>(file_.data());
  const std::string_view all(first, file_.size());
  constexpr std::string_view kMagic = "IIDB";
  for (size_t at = all.find(kMagic, offset_ + 1); at != all.npos; at = all.find(kMagic, at + 1)) {
    if (!is_event_record(file_.subspan(at))) continue;
    tell_damage(rule);
    at_ = at;
    jumped_ = true;
    return true;
  }
  return false;
}

void TraceReader::tell_damage(const std::string& rule) {
  if (damages_.size() < kDamages) {
    damages_.push_back("offset " + std::to_string(offset_) + ": " + rule);
  }
  ++damaged_;
}

// The bytes here are no whole record. Returns false.
bool TraceReader::corrupt(const std::string& rule) {
  if (go_on_behind(rule)) return false;
  const bool some = resumes_ && next_sequence_ != 0;
  if (some) tell_damage(rule);
  return stop(some ? State::kTruncated : State::kCorrupt, rule);
}

// A whole record that breaks a rule. Returns false.
bool TraceReader::leave_out(const std::string& rule) {
  if (!resumes_) return stop(State::kCorrupt, rule);
  tell_damage(rule);
  return false;
}

// Returns whether the record is an event, which is then current.
bool TraceReader::read_record(const Chunk& chunk) {
  if (sequence_ == 0) return read_header(chunk);
  if (chunk.kind() == RecordKind::kFileHeader) return leave_out("a second file header");
  if (chunk.kind() == RecordKind::kEnd) return read_end(chunk);
  ++records_;
  if (!known_event(chunk.kind(), chunk.version)) {
    ++skipped_;
    return false;
  }
  Result<TraceEvent> event = decode(chunk.kind(), chunk.payload());
  if (!event.ok()) {
    return leave_out(std::string(record_kind_name(chunk.kind())) + ": " + event.error().message);
  }
  event_ = std::move(*event);
  ++events_;
  return true;
}

// A header that is whole, and of another version, says that nothing after it is to be believed.
bool TraceReader::read_header(const Chunk& chunk) {
  ByteReader in(chunk.payload());
  const uint32_t version = in.u32();
  const uint32_t flags = in.u32();
  const uint64_t reserved = in.u64();
  const auto refuse = [this](const std::string& rule) { return stop(State::kCorrupt, rule); };
  if (!in.ok() || in.rest() != 0) return refuse("the file header has another size");
  if (version != kTraceVersion || chunk.version != 0) {
    return refuse("trace version " + std::to_string(version) + " is not known");
  }
  if (flags != 0 || reserved != 0) return refuse("a reserved field is not zero");
  return false;
}

bool TraceReader::read_end(const Chunk& chunk) {
  ByteReader in(chunk.payload());
  const uint64_t events = in.u64();
  const uint64_t dropped = in.u64();
  if (!in.ok() || in.rest() != 0 || chunk.version != 0) {
    return leave_out("the end marker has another size or version");
  }
  dropped_ = dropped;
  // Damage has been told of; otherwise nothing else says that events are missing.
  if (events != records_ && damaged_ == 0) {
    leave_out("the end marker tells of " + std::to_string(events) + " events, the file has " +
              std::to_string(records_));
  }
  if (at_ != file_.size() && state_ == State::kOpen) {
    offset_ = at_;
    leave_out("trailing bytes after the end marker");
  }
  if (state_ == State::kOpen) state_ = State::kComplete;
  return false;
}

bool TraceReader::stop(State state, const std::string& rule) {
  state_ = state;
  error_ = Error{ErrorCode::kCorruptInput, "offset " + std::to_string(offset_) + ": " + rule};
  return false;
}

}  // namespace uptier::profile
