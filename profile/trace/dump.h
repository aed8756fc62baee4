// dump.h: a trace as text, without addresses or times.
//
// Handles, ids and threads are renumbered in the order in which they appear (m1, t1, d1, thread 1),
// so two runs that observed the same print the same.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "profile/trace/events.h"

namespace uptier::profile {

// Prints the events of a trace file one after the other, as far as the file can be read. The last
// line says how the file ends: "end events N dropped N", "truncated: ..." or "corrupt: ...".
std::string dump_trace(ByteSpan file);

// The same, event by event.
class EventPrinter {
 public:
  // Returns one or more lines, each with its newline.
  std::string print(const TraceEvent& event);

 private:
  using Names = std::map<uint64_t, uint64_t>;

  std::string line(const Provenance& event);
  std::string line(const MethodDetails& event);
  std::string line(const BulkType& event);
  std::string line(const InstrumentationDesc& event);
  std::string line(const InstrumentationData& event);
  std::string line(const FlushEvent& event);
  std::string line(const FirstCallEvent& event);
  std::string other_slots(const Schema& schema, std::span<const uint64_t> words);
  std::string pairs_text(SlotKind kind, std::span<const uint64_t> pairs);

  Names methods_;
  Names types_;
  Names ids_;
  Names threads_;
  std::map<uint64_t, InstrumentationDesc> descs_;  // by id, for those with a schema
};

}  // namespace uptier::profile
