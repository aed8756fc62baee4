#include "profile/trace/read_trace.h"

#include <optional>
#include <utility>

#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

using State = TraceReader::State;

std::string at_offset(const TraceReader& reader, const std::string& rule) {
  return "offset " + std::to_string(reader.offset()) + ": " + rule;
}

// Adds events to a builder; after damage, only those that do not depend on possibly missing events.
class Taker {
 public:
  Status take(const TraceEvent& event, bool damaged) {
    const auto* data = std::get_if<InstrumentationData>(&event);
    const std::optional<uint64_t> flushed = std::exchange(flushed_, std::nullopt);
    if (damaged && data != nullptr && flushed != data->id) {
      return Error{ErrorCode::kCorruptInput,
                   "data of id " + std::to_string(data->id) + " whose flush is missing"};
    }
    const Status status = builder_.add(event);
    const auto* flush = std::get_if<FlushEvent>(&event);
    if (status.ok() && flush != nullptr) flushed_ = flush->id;
    return status;
  }

  const uptier::ProfileBuilder& builder() const { return builder_; }

 private:
  uptier::ProfileBuilder builder_;
  std::optional<uint64_t> flushed_;  // by the last event
};

}  // namespace

Result<TraceRead> read_trace(ByteSpan file) {
  TraceReader reader(file, TraceReader::OnDamage::kResume);
  TraceRead read;
  Taker taker;
  std::vector<std::string> broken;
  while (reader.next()) {
    const bool damaged = reader.damaged() != 0;
    const Status status = taker.take(reader.event(), damaged);
    if (status.ok()) continue;
    const std::string what = at_offset(reader, status.error().message);
    if (!damaged) return Error{ErrorCode::kCorruptInput, what};
    if (broken.size() < TraceReader::kDamages) broken.push_back(what);
    ++read.damaged;
  }
  if (reader.state() == State::kCorrupt) return reader.error();
  read.warnings = reader.damages();
  read.warnings.insert(read.warnings.end(), broken.begin(), broken.end());
  read.damaged += reader.damaged();
  read.trace.profile = taker.builder().profile(&read.trace.report);
  read.trace.first_calls = taker.builder().first_calls();
  read.trace.truncated = reader.state() == State::kTruncated;
  read.trace.skipped = reader.skipped() + taker.builder().skipped();
  read.trace.lost = reader.dropped();
  return read;
}

}  // namespace uptier::profile
