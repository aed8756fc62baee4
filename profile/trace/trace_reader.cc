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
constexpr uint16_t kLastEventType = 0x553f;  // later ones belong to profile files (upf/format.h)

bool known_event(RecordKind kind, uint16_t version) {
  return version == 0 && kind >= RecordKind::kProvenance && kind <= RecordKind::kFirstCall;
}

constexpr uint64_t kRepeats = 16;

// Returns whether the available part of a chunk's magic is right: a cut trace may end inside it.
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

// Takes the next chunk from the file. The order of the checks matters: one of our records with a
// damaged length, and bytes that are too short for a chunk and begin none, are corrupt, not
// truncated.
std::optional<TraceReader::Chunk> TraceReader::next_chunk() {
  offset_ = at_;
  const size_t rest = file_.size() - at_;
  const auto cut = [this, rest](uint64_t needed) {
    const std::string rule = rest == 0 ? "the file ends without end marker"
                                       : "the file ends inside a chunk: " + std::to_string(rest) +
                                             " of " + std::to_string(needed) + " bytes";
    // A chunk may also declare too large a size, or its end may be missing before the next chunk.
    if (!go_on_behind(rule)) stop(State::kTruncated, rule);
    return std::nullopt;
  };
  const ByteSpan here = file_.subspan(at_);
  if (!begins_chunk(here)) return corrupt("the magic is not IIDB"), std::nullopt;
  // The type may be present even if the chunk's header is not complete.
  if (at_ == 0 && rest >= 6 &&
      load<uint16_t>(here, 4) != static_cast<uint16_t>(RecordKind::kFileHeader)) {
    const char* rule = "the file does not start with a file header";
    // The file may have lost its header; then the record here is read.
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
    // The length may come from another record, or the rest was cut off: records inside are
    // searched, unless that adds up to many times the file.
    repeated_ += chunk.bytes.size();
    const char* rule = "the content checksum is wrong";
    return repeated_ <= kRepeats * file_.size() ? corrupt(rule) : leave_out(rule);
  }
  sequence_ = load<uint32_t>(chunk.bytes, 20);
  return check_sequence();
}

// With kResume, missing records are skipped, and repeated ones are left out.
bool TraceReader::check_sequence() {
  const bool follows = sequence_ == next_sequence_;
  const bool passed = sequence_ < next_sequence_;
  const std::string rule =
      "sequence " + std::to_string(sequence_) + " instead of " + std::to_string(next_sequence_);
  if (!follows && !resumes_) return stop(State::kCorrupt, rule);
  // After damage, missing records are part of that damage.
  const bool told = std::exchange(jumped_, false) && !passed;
  if (!follows && !told) tell_damage(rule);
  if (!passed) next_sequence_ = sequence_ + 1;
  return !passed;
}

// Records a broken rule as damage and continues at the next record, if there is one, after the
// start of the current chunk.
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

// For bytes that are not a whole record. Returns false.
bool TraceReader::corrupt(const std::string& rule) {
  if (go_on_behind(rule)) return false;
  const bool some = resumes_ && next_sequence_ != 0;
  if (some) tell_damage(rule);
  return stop(some ? State::kTruncated : State::kCorrupt, rule);
}

// For a whole record that breaks a rule. Returns false.
bool TraceReader::leave_out(const std::string& rule) {
  if (!resumes_) return stop(State::kCorrupt, rule);
  tell_damage(rule);
  return false;
}

// Returns whether the record is an event, which then is the current one.
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

// If a whole header has another version, nothing after it can be trusted.
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
  // Damage has been reported; without damage, nothing else tells that events are missing.
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
