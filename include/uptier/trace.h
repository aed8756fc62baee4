// trace.h: the events that carry what was observed out of the runtime.
//
// Law: a handle is announced (MethodDetails, BulkType) before an event uses it, and an id is
// described (InstrumentationDesc) before data comes for it. InstrumentationData is a cumulative
// snapshot: it overrides the earlier data of the same id, so a lost event costs nothing.
//
// An id stands for what one thread observed of one method (or for all threads, where they share
// their counters). Overriding is right within an id; summing is right across ids. A method that two
// threads run therefore has two ids, and its profile is the sum of the last data of both.
//
// Two kinds of ids stand apart. What the copies of a method's optimized code count has ids of its
// own (FlushEvent::thread with bit 31 set): its data are added like all others, while its `calls`
// are 0, for they are in the others. And what they count of inlined bodies (InstrumentationDesc::
// version 65537) belongs to the method that has the body in it, see Profile::inlined: it is added
// to nobody's counts, and `calls` are the root's. profile_from_trace knows both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "uptier/result.h"

namespace uptier {

// Says who made the following events and how they were sampled.
struct Provenance {
  std::string engine;     // name and version of the runtime
  uint64_t interval = 0;  // mean number of calls between sampled ones; 0 is unknown
  std::string gap;        // how gaps are drawn: "fixed", "prime", "random" or "exact"
  std::string options;    // Options::changes: all that are not as usual

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// Announces a method handle.
struct MethodDetails {
  uint64_t handle = 0;      // not 0; a number of the trace, never an address
  uint64_t module_key = 0;  // the embedder's stable key of the module
  uint32_t function_index = 0;
  std::string name;

  friend bool operator==(const MethodDetails&, const MethodDetails&) = default;
};

// Announces a type handle. Type and method handles are numbered apart.
struct BulkType {
  uint64_t handle = 0;  // not 0
  std::string name;

  friend bool operator==(const BulkType&, const BulkType&) = default;
};

// What an 8-byte region of `desc` or of data holds. A shape gives two bits to each region; region i
// is bits 2 * (i % 4) and up of byte i / 4, and unused bits of the last byte are 0.
enum class Region : uint8_t { kBytes = 0, kType = 1, kMethod = 2, kReserved = 3 };

// Describes the data of one id. The arrays `desc` and the data have lengths that are multiples of
// 8; the first region of `desc` is a method or a type handle.
struct InstrumentationDesc {
  uint64_t id = 0;
  uint32_t version = 0;  // format of `desc`
  std::vector<std::byte> desc_shape;
  std::vector<std::byte> desc;
  std::vector<std::byte> data_shape;

  friend bool operator==(const InstrumentationDesc&, const InstrumentationDesc&) = default;
};

// Everything observed for an id up to now. Handles in data are announced before it, or 0 (no
// handle).
struct InstrumentationData {
  uint64_t id = 0;
  std::vector<std::byte> data;

  friend bool operator==(const InstrumentationData&, const InstrumentationData&) = default;
};

// Why counts were handed over.
enum class FlushReason : uint8_t { kCalls = 1, kLoops, kFinal, kDemand };

// Returns "call-threshold", "loop-threshold", "final", "demand" or "unknown".
std::string_view flush_reason_name(FlushReason reason);

// Says at which call the data that follows at once was handed over.
struct FlushEvent {
  uint64_t id = 0;
  uint64_t calls = 0;          // calls of the method so far, those that this id speaks for
  uint64_t sampled_calls = 0;  // how many of them ran the instrumented copy
  uint64_t thread = 0;         // the runtime's number of the thread; 0 where threads share counters
  uint32_t flush_index = 0;    // rises with every flush of the id
  FlushReason reason = FlushReason::kCalls;
  // What one sample since the flush before stands for: the mean gap that was in force, or where
  // sampling adapts, that there was; 1 is every call, 0 unknown.
  uint64_t interval = 0;
  uint64_t iterations = 0;  // of the loops of these calls so far
  uint64_t bursts = 0;      // how many stretches of them ran the instrumented copy
  // Iterations of such a stretch, where what was counted stands for all calls and all
  // iterations / burst: where sampling adapts, or has a fixed interval other than 1. 0 elsewhere.
  uint64_t burst = 0;
  // Whether all these calls and iterations ran code that can count them. Then estimates are brought
  // to each of both by itself, where the id's desc says what counts for which.
  bool exact_totals = false;

  friend bool operator==(const FlushEvent&, const FlushEvent&) = default;
};

// Says that a method was called for the first time, by whichever thread. Comes at the end of a trace,
// for all methods that were called, also for those that no data has come for.
struct FirstCallEvent {
  uint64_t handle = 0;    // of a method
  uint64_t position = 0;  // among all methods, from 0

  friend bool operator==(const FirstCallEvent&, const FirstCallEvent&) = default;
};

using TraceEvent = std::variant<Provenance, MethodDetails, BulkType, InstrumentationDesc,
                                FlushEvent, InstrumentationData, FirstCallEvent>;

// Receives the events of a runtime.
//
// Thread: calls never overlap, but come from whichever thread hands its counts over (a thread that
// runs the guest, or the runtime's worker). A sink must not call the runtime. An error does not
// stop the guest: the runtime counts the event as lost (LossReport::trace_events_lost) and goes on.
class TraceSink {
 public:
  virtual ~TraceSink() = default;

  // Takes one event, in the order of the law above.
  virtual Status on_event(const TraceEvent& event) = 0;

  // Takes the end of the trace; called once, last. `trace_events_lost` counts those for which
  // on_event returned an error. One of its own counts as one more.
  virtual Status finish(uint64_t trace_events_lost) = 0;
};

// Opens a trace file for writing (mode 0600) and returns a sink that fills it.
//
// A regular file of that name is replaced at once, not truncated, so that readers of the old one
// keep it; anything else of that name (link, device, folder) is refused. The events up to and
// including each InstrumentationData reach the operating system before on_event returns. The first
// failed write is final: it is returned from then on, by finish too, and the file can be read up to
// its last whole record. A sink that is destroyed unfinished leaves a file without end marker.
Result<std::unique_ptr<TraceSink>> trace_file_sink(const std::string& path);

}  // namespace uptier
