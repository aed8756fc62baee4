// validate.h: checks whether a trace obeys the laws of trace.h and trace_file.h.
//
// Checked, in addition to the reader's checks of each record:
//   handles   not 0, announced before use, not announced again with other words
//   desc      shapes fit their arrays, no reserved region, first region a type or method handle; for a
//             known version: exactly the encoding of a schema; not described again differently
//   data      described before; as long as the data shape says; handles in it announced or 0; for a
//             known version: pairs as in data.h, and from one snapshot of an id to the next no sum
//             falls, and no table with its `other`
//   flush     described before; the data of the same id comes next; flush_index rises; calls,
//             iterations and bursts do not fall
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profile/trace/data.h"
#include "profile/trace/events.h"

namespace uptier::profile {

// The contents of a valid trace.
struct TraceSummary {
  uint64_t events = 0;
  uint64_t provenances = 0;
  uint64_t methods = 0;  // handles announced
  uint64_t types = 0;
  uint64_t descs = 0;  // ids described
  uint64_t data = 0;
  uint64_t flushes = 0;
  uint64_t skipped = 0;  // chunks of unknown type or version
  uint64_t opaque = 0;   // descs of an unknown version
  uint64_t dropped = 0;  // events that the runtime could not deliver
  uint64_t bytes = 0;

  friend bool operator==(const TraceSummary&, const TraceSummary&) = default;
};

// Prints one "name value" line for each field.
std::string to_text(const TraceSummary& summary);

// Checks a whole trace file. The error names offset and rule; a truncated file is an error.
Result<TraceSummary> validate(ByteSpan file);

// The laws above, event by event, for traces that are not in a file.
class TraceLaws {
 public:
  // Fails with the rule that the event breaks; afterwards the object must not be used.
  Status check(const TraceEvent& event);

  // Fails if the trace may not end here.
  Status check_end() const;

  const TraceSummary& summary() const { return summary_; }

 private:
  // The state of an id.
  struct Stream {
    InstrumentationDesc desc;
    bool known = false;  // the data has a schema
    Schema schema;       // computed from the first data, which is as large
    uint64_t size = 0;   // of the data, exact if `sized`
    bool sized = false;
    std::vector<uint64_t> last;  // words of the previous snapshot, if `known`
    std::optional<FlushEvent> flush;
  };

  Status take(const Provenance& provenance);
  Status take(const MethodDetails& method);
  Status take(const BulkType& type);
  Status take(const InstrumentationDesc& desc);
  Status take(const InstrumentationData& data);
  Status take(const FlushEvent& flush);
  Status take(const FirstCallEvent& call);
  Status check_handles(ByteSpan shape, ByteSpan bytes, bool zero_allowed) const;
  Status check_data(const Stream& stream, const InstrumentationData& data) const;
  // `settles`: counts of control flow may have fallen.
  Status check_words(Stream& stream, const InstrumentationData& data, bool settles) const;

  std::map<uint64_t, MethodDetails> methods_;
  std::map<uint64_t, BulkType> types_;
  std::set<uint64_t> first_calls_;  // handles
  std::map<uint64_t, Stream> streams_;
  std::optional<uint64_t> awaited_;  // the id whose flush was the last event
  TraceSummary summary_;
};

}  // namespace uptier::profile
