// trace.h: the events that carry observations out of the runtime.
//
// Rule: a handle is announced (MethodDetails, BulkType) before an event uses it, and an id is
// described (InstrumentationDesc) before data comes for it. InstrumentationData is a cumulative
// snapshot: it replaces the earlier data of the same id, so a lost event costs nothing. Counts do not
// fall from one snapshot to the next, except counts of blocks and edges at a flush by kFinal or
// kDemand: frames that were running before had made them too high.
//
// An id stands for the observations of one method by one thread (or by all threads, if they share
// their counters). Data of one id replaces earlier data; data of different ids is summed. So a
// method that two threads run has two ids, and its profile is the sum of the last data of both.
//
// Two kinds of ids are special. Instrumented copies of a method's optimized code have ids of their
// own for the method's counts (FlushEvent::thread with bit 31 set): their data is added like any
// other, but their `calls` are 0, because the other ids include those calls. For inlined bodies,
// such copies have further ids (InstrumentationDesc::version 65537 or 131073). These belong to the
// method that contains the inlined body, see Profile::inlined; their data is added to no method's
// counts, and their `calls` are the root's. profile_from_trace handles both.
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

// Says which engine made the following events, and how it sampled.
struct Provenance {
  std::string engine;     // name and version of the runtime
  uint64_t interval = 0;  // mean number of calls between samples; 0 is unknown
  std::string gap;        // how gaps are drawn: "fixed", "prime", "random" or "exact"
  std::string options;    // Options::changes: all options that differ from their defaults

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

// Announces a type handle. Type handles and method handles are numbered separately.
struct BulkType {
  uint64_t handle = 0;  // not 0
  std::string name;

  friend bool operator==(const BulkType&, const BulkType&) = default;
};

// The content of an 8-byte region of `desc` or of data. A shape has two bits per region: region i
// has bits 2 * (i % 4) and up of byte i / 4; unused bits of the last byte are 0.
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

// All observations of an id so far. A handle in data is 0 (no handle) or was announced before.
struct InstrumentationData {
  uint64_t id = 0;
  std::vector<std::byte> data;

  friend bool operator==(const InstrumentationData&, const InstrumentationData&) = default;
};

// The reason of a flush. kCalls, kLoops: enough calls, or iterations, since the flush before.
// kFinal: the thread has detached, or the runtime ends. kDemand: all others, such as
// Runtime::flush.
enum class FlushReason : uint8_t { kCalls = 1, kLoops, kFinal, kDemand };

// Returns "call-threshold", "loop-threshold", "final", "demand" or "unknown".
std::string_view flush_reason_name(FlushReason reason);

// Gives the state of the method at the flush of the data that follows directly.
struct FlushEvent {
  uint64_t id = 0;
  uint64_t calls = 0;          // calls of the method so far, as far as this id counts them
  uint64_t sampled_calls = 0;  // calls of these that ran the instrumented copy
  uint64_t thread = 0;         // the runtime's number of the thread; 0 if threads share counters
  uint32_t flush_index = 0;    // rises with every flush of the id
  FlushReason reason = FlushReason::kCalls;
  // The weight of one sample since the flush before: the mean gap that was set or, with adaptive
  // sampling, the actual one; 1 is every call, 0 unknown.
  uint64_t interval = 0;
  uint64_t iterations = 0;  // loop iterations in these calls so far
  uint64_t bursts = 0;      // runs of consecutive iterations in the instrumented copy
  // Iterations of one such run. Not 0 with adaptive sampling and with a fixed interval other than 1:
  // then the sampled counts stand for (calls + iterations / burst) executions.
  uint64_t burst = 0;
  // True if all these calls and iterations ran code that can count them. Estimates are then scaled
  // to the number of calls and the number of iterations separately, if the id's desc says which
  // counts belong to which.
  bool exact_totals = false;

  friend bool operator==(const FlushEvent&, const FlushEvent&) = default;
};

// Says that a method was called for the first time, by any thread. Comes at the end of a trace, for
// all methods that were called, also those without data.
struct FirstCallEvent {
  uint64_t handle = 0;    // of the method
  uint64_t position = 0;  // among all methods, from 0

  friend bool operator==(const FirstCallEvent&, const FirstCallEvent&) = default;
};

using TraceEvent = std::variant<Provenance, MethodDetails, BulkType, InstrumentationDesc,
                                FlushEvent, InstrumentationData, FirstCallEvent>;

// Receives the events of a runtime.
//
// Thread: the runtime's worker, or any thread that flushes; calls never overlap. A sink must not
// call the runtime. An error does not stop the guest: the runtime counts the event as lost
// (LossReport::trace_events_lost) and goes on.
class TraceSink {
 public:
  virtual ~TraceSink() = default;

  // Takes one event, in the order that the rule above requires.
  virtual Status on_event(const TraceEvent& event) = 0;

  // Called once, as the last call, at the end of the trace. `trace_events_lost` is the number of
  // on_event calls that returned an error. If this call fails, one more counts as lost.
  virtual Status finish(uint64_t trace_events_lost) = 0;
};

// Opens a trace file for writing (mode 0600) and returns a sink that fills it.
//
// A regular file of that name is replaced at once, not truncated, so programs that have the old one
// open can read on. If the name is a link, device or directory, the call fails. Events up to and
// including each InstrumentationData reach the operating system before on_event returns. The first
// failed write is final: its error is returned from then on, also by finish, and the file can be
// read up to its last complete record. If a sink is destroyed without finish, the file has no end
// marker.
Result<std::unique_ptr<TraceSink>> trace_file_sink(const std::string& path);

}  // namespace uptier
