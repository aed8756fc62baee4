#include <cerrno>
#include <cstring>
#include <utility>

#include "profile/base/checksum.h"
#include "profile/base/room.h"
#include "profile/base/wall.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

// Large enough to make a write call cheap compared with its bytes; between two data events there
// are rarely more than a few hundred bytes.
constexpr size_t kBufferSize = 64u << 10;
constexpr size_t kPadding = 16;  // most bytes after a record

}  // namespace

void seal_record(std::span<std::byte> record) {
  const uint32_t header = header_checksum(record);
  store<uint32_t>(record, 16, header);
  store<uint64_t>(record, 24, content_checksum(header, record.subspan(kRecordHeader)));
}

TraceWriter::TraceWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {
  record_ = 0;
  buffer_.resize(kRecordHeader);
  ByteWriter out(buffer_);
  out.u32(kTraceVersion);
  out.u32(0);
  end_record(RecordKind::kFileHeader);
}

Status TraceWriter::on_event(const TraceEvent& event) {
  if (const Status status = begin_record(); !status.ok()) return status;
  const bool encoded = finishes([&] {
    encode(event, buffer_);
    make_room(buffer_, kPadding);
  });
  if (!encoded || buffer_.size() - record_ > kMaxContent) {
    buffer_.resize(record_);
    ++dropped_;
    if (!encoded) return out_of_memory("trace");
    return Error{ErrorCode::kResourceExhausted, "trace: an event is larger than a record may be"};
  }
  end_record(kind_of(event));
  ++events_;
  const bool handed_over = std::holds_alternative<InstrumentationData>(event);
  return handed_over || buffer_.size() >= kBufferSize ? flush() : status_;
}

Status TraceWriter::finish(uint64_t dropped) {
  if (finished_) return status_;
  if (begin_record().ok()) {
    const bool encoded = finishes([&] {
      ByteWriter out(buffer_);
      out.u64(events_);
      out.u64(dropped_ + dropped);
      make_room(buffer_, kPadding);
    });
    if (encoded) {
      end_record(RecordKind::kEnd);
    } else {
      buffer_.resize(record_);  // as if the file had been cut off there
      status_ = out_of_memory("trace");
    }
    // status_ keeps failures.
    (void)flush();
  }
  finished_ = true;
  const int closed = sink_->close();
  return closed < 0 && status_.ok() ? fail("close", -closed) : status_;
}

Status TraceWriter::begin_record() {
  if (!status_.ok()) return status_;
  if (finished_) return Error{ErrorCode::kInvalidArgument, "trace: an event after the end"};
  if (sequence_ > UINT32_MAX) {
    status_ = Error{ErrorCode::kResourceExhausted, "trace: more than 2^32 records"};
    return status_;
  }
  record_ = buffer_.size();
  return walled("trace", [&]() -> Status {
    buffer_.resize(record_ + kRecordHeader);
    return {};
  });
}

void TraceWriter::end_record(RecordKind kind) {
  buffer_.resize((buffer_.size() + 15) & ~size_t{15});
  const std::span<std::byte> record = std::span(buffer_).subspan(record_);
  store<uint32_t>(record, 0, kTraceMagic);
  store<uint16_t>(record, 4, static_cast<uint16_t>(kind));
  store<uint16_t>(record, 6, 0);
  store<uint64_t>(record, 8, record.size() - kChunkHeader);
  store<uint32_t>(record, 20, static_cast<uint32_t>(sequence_++));
  seal_record(record);
}

Status TraceWriter::flush() {
  if (!status_.ok()) return status_;
  ByteSpan rest = buffer_;
  while (!rest.empty()) {
    const int64_t taken = sink_->write(rest);
    if (taken == -EINTR) continue;
    if (taken < 0) return fail("write", static_cast<int>(-taken));
    // A device that takes nothing and reports no error would be asked forever.
    if (taken == 0) return fail("write", EIO);
    rest = rest.subspan(static_cast<size_t>(taken));
  }
  buffer_.clear();
  return {};
}

Status TraceWriter::fail(const char* what, int error) {
  buffer_.clear();
  // strerrordesc_np: the text for an errno without shared state (glibc 2.32).
  const char* text = strerrordesc_np(error);
  status_ = Error{ErrorCode::kIo, std::string("trace: ") + what + " failed: " +
                                      (text != nullptr ? text : std::to_string(error).c_str())};
  return status_;
}

}  // namespace uptier::profile
