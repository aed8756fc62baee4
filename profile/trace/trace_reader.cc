#include <algorithm>
#include <cstring>

#include "profile/checksum.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

constexpr uint16_t kFirstRecordType = 0x5500;
constexpr uint16_t kLastRecordType = 0x55ff;

bool known_event(RecordKind kind, uint16_t version) {
  return version == 0 && kind >= RecordKind::kProvenance && kind <= RecordKind::kFirstCall;
}

// Whether as much of a chunk's magic as there is, is right: a cut trace still begins one.
bool begins_chunk(ByteSpan here) {
  const size_t there = std::min(here.size(), sizeof kTraceMagic);
  return there == 0 || std::memcmp(here.data(), &kTraceMagic, there) == 0;
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
    if (!chunk) return false;
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
    stop(State::kTruncated,
         "the file ends " + (rest == 0 ? std::string("without end marker")
                                       : "inside a chunk: " + std::to_string(rest) + " of " +
                                             std::to_string(needed) + " bytes"));
    return std::nullopt;
  };
  const ByteSpan here = file_.subspan(at_);
  if (!begins_chunk(here)) return corrupt("the magic is not IIDB"), std::nullopt;
  // The type is there before the whole of a chunk's header is.
  if (at_ == 0 && rest >= 6 &&
      load<uint16_t>(here, 4) != static_cast<uint16_t>(RecordKind::kFileHeader)) {
    return corrupt("the file does not start with a file header"), std::nullopt;
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
    return corrupt("the content checksum is wrong");
  }
  sequence_ = load<uint32_t>(chunk.bytes, 20);
  if (sequence_ != next_sequence_) {
    return corrupt("sequence " + std::to_string(sequence_) + " instead of " +
                   std::to_string(next_sequence_));
  }
  ++next_sequence_;
  return true;
}

// Returns whether the record is an event, which is then current.
bool TraceReader::read_record(const Chunk& chunk) {
  if (sequence_ == 0) return read_header(chunk);
  if (chunk.kind() == RecordKind::kFileHeader) return corrupt("a second file header");
  if (chunk.kind() == RecordKind::kEnd) return read_end(chunk);
  ++records_;
  if (!known_event(chunk.kind(), chunk.version)) {
    ++skipped_;
    return false;
  }
  Result<TraceEvent> event = decode(chunk.kind(), chunk.payload());
  if (!event.ok()) {
    return corrupt(std::string(record_kind_name(chunk.kind())) + ": " + event.error().message);
  }
  event_ = std::move(*event);
  ++events_;
  return true;
}

bool TraceReader::read_header(const Chunk& chunk) {
  ByteReader in(chunk.payload());
  const uint32_t version = in.u32();
  const uint32_t flags = in.u32();
  const uint64_t reserved = in.u64();
  if (!in.ok() || in.rest() != 0) return corrupt("the file header has another size");
  if (version != kTraceVersion || chunk.version != 0) {
    return corrupt("trace version " + std::to_string(version) + " is not known");
  }
  if (flags != 0 || reserved != 0) return corrupt("a reserved field is not zero");
  return false;
}

bool TraceReader::read_end(const Chunk& chunk) {
  ByteReader in(chunk.payload());
  const uint64_t events = in.u64();
  dropped_ = in.u64();
  if (!in.ok() || in.rest() != 0 || chunk.version != 0) {
    return corrupt("the end marker has another size or version");
  }
  if (events != records_) {
    return corrupt("the end marker tells of " + std::to_string(events) + " events, the file has " +
                   std::to_string(records_));
  }
  if (at_ != file_.size()) {
    offset_ = at_;
    return corrupt("trailing bytes behind the end marker");
  }
  state_ = State::kComplete;
  return false;
}

bool TraceReader::stop(State state, const std::string& rule) {
  state_ = state;
  error_ = Error{ErrorCode::kCorruptInput, "offset " + std::to_string(offset_) + ": " + rule};
  return false;
}

}  // namespace uptier::profile
