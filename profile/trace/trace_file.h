// trace_file.h: a trace on disk, written once from front to back, readable up to its last whole
// record.
//
// A file is a list of chunks, each at a multiple of 16 bytes, little-endian:
//
//     0   u32 magic "IIDB" | u16 type | u16 version | u64 content length     chunk header
//     16  u32 header checksum | u32 sequence | u64 content checksum          only our records
//     32  payload, then zeros up to a multiple of 16
//
// The chunk header is the same as in IREE's instrumentation database. Types 0x5500..0x55ff are our
// records (RecordKind) and have the second line, which the content length includes; chunks of other
// types are skipped by length. Sequence numbers of records rise by one from 0. The header checksum
// covers chunk header and sequence, so a damaged length can be distinguished from a cut file. The
// content checksum covers payload and padding and is seeded with the header checksum, so records
// cannot swap contents. Both are XXH3 (the first is its low half).
//
// The first chunk is the file header, the last one the end marker. A file without end marker is
// truncated; anything after it is corrupt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "profile/trace/events.h"

namespace uptier::profile {

inline constexpr uint32_t kTraceMagic = 0x42444949;  // "IIDB"
inline constexpr uint32_t kTraceVersion = 1;
inline constexpr size_t kChunkHeader = 16;
inline constexpr size_t kRecordHeader = 32;  // the chunk header included
// Four times the data of the largest schema; a Desc of that schema without any runs takes four
// fifths.
inline constexpr uint64_t kMaxContent = 32u << 20;

// The destination of a writer's bytes; tests inject faults here.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Takes up to `bytes.size()` bytes; returns how many were taken, or a negative errno.
  virtual int64_t write(ByteSpan bytes) = 0;

  // Returns 0 or a negative errno. Called at most once; nothing is written afterwards.
  virtual int close() = 0;
};

// Opens a sink on a file as trace_file_sink describes.
Result<std::unique_ptr<ByteSink>> open_file_sink(const std::string& path);

// Computes both checksums of one of our records (header included, size a multiple of 16) in place.
void seal_record(std::span<std::byte> record);

// Writes events as records. The first failed write is final: every later call returns it and
// nothing more is written, so the file stays readable up to its last whole record.
//
// Thread: one at a time.
class TraceWriter final : public TraceSink {
 public:
  // Buffers the file header; the first write happens with the first flush().
  explicit TraceWriter(std::unique_ptr<ByteSink> sink);

  // Buffers the event; passes the buffer to the sink after every data event, or when it is large.
  // An event larger than kMaxContent is refused and counted as dropped.
  Status on_event(const TraceEvent& event) override;

  // Writes the end marker and closes the sink.
  Status finish(uint64_t dropped) override;

  // Passes all buffered bytes to the sink.
  Status flush();

  uint64_t events() const { return events_; }
  uint64_t dropped() const { return dropped_; }

 private:
  Status begin_record();
  void end_record(RecordKind kind);
  Status fail(const char* what, int error);

  std::unique_ptr<ByteSink> sink_;
  Bytes buffer_;
  size_t record_ = 0;  // start of the open record in the buffer
  uint64_t sequence_ = 0;
  uint64_t events_ = 0;
  uint64_t dropped_ = 0;
  bool finished_ = false;
  Status status_;  // the first failure
};

// Reads a trace from memory, event by event. Never trusts a length; allocates no more than the
// current event.
//
// With OnDamage::kResume it also reads the undamaged records after damage: it continues at the next
// record whose header checksum is right, at any byte. Damage is listed in damages() and counted;
// records with an earlier sequence number are left out.
class TraceReader {
 public:
  static constexpr size_t kDamages = 16;  // most damages that are listed

  enum class OnDamage : uint8_t { kStop, kResume };

  enum class State : uint8_t {
    kOpen,       // there may be more events
    kComplete,   // the end marker was read and is the end
    kTruncated,  // the file ends early, after the events read so far
    kCorrupt,  // a rule is broken after the events read so far; with kResume: nothing could be read
  };

  // The file must outlive the reader.
  explicit TraceReader(ByteSpan file, OnDamage on_damage = OnDamage::kStop)
      : file_(file), resumes_(on_damage == OnDamage::kResume) {}

  // Moves to the next event. Returns false if there is none: state() and error() say why.
  bool next();

  const TraceEvent& event() const { return *event_; }
  uint64_t offset() const { return offset_; }      // of the event's record
  uint64_t sequence() const { return sequence_; }  // of the event's record

  State state() const { return state_; }
  // Returns offset and rule; only for kTruncated and kCorrupt.
  const Error& error() const { return *error_; }

  // The first kDamages damages that were skipped, with offset and rule; and the number of all.
  const std::vector<std::string>& damages() const { return damages_; }
  uint64_t damaged() const { return damaged_; }

  uint64_t events() const { return events_; }    // read so far
  uint64_t skipped() const { return skipped_; }  // chunks of unknown type or version so far
  uint64_t dropped() const { return dropped_; }  // as the end marker says

 private:
  struct Chunk;

  std::optional<Chunk> next_chunk();
  bool go_on_behind(const std::string& rule);
  void tell_damage(const std::string& rule);
  bool check_record(const Chunk& chunk);
  bool check_sequence();
  bool read_record(const Chunk& chunk);
  bool read_header(const Chunk& chunk);
  bool read_end(const Chunk& chunk);
  bool stop(State state, const std::string& rule);
  bool corrupt(const std::string& rule);
  bool leave_out(const std::string& rule);

  ByteSpan file_;
  bool resumes_;
  size_t at_ = 0;
  uint64_t offset_ = 0;
  uint64_t sequence_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t records_ = 0;  // our records between header and end marker
  uint64_t events_ = 0;
  uint64_t skipped_ = 0;
  uint64_t dropped_ = 0;
  bool jumped_ = false;    // over damage, to the record at which reading continues
  uint64_t repeated_ = 0;  // bytes that were scanned again
  uint64_t damaged_ = 0;
  std::vector<std::string> damages_;
  State state_ = State::kOpen;
  std::optional<TraceEvent> event_;
  std::optional<Error> error_;
};

}  // namespace uptier::profile
