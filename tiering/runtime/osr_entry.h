// OsrEntry: moves a loop of the host's interpreter into compiled code (on-stack replacement).
//
// The interpreter's frame stays where it is: the rest of the call runs as a nested call, which
// takes the call's arguments and the address of the host's slots. That code may exit to the
// interpreter again, whose loop may come here again: each time the stack gets deeper. may_enter()
// limits that.
//
//   Thread: any; the calling thread's own state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uptier/ids.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class AttachedThread;
class Counters;
struct Engine;
class GuestWaits;
class Invoker;
struct Method;
class Notes;
class OptimizedSamples;
struct Version;

class OsrEntry {
 public:
  // All outlive this.
  OsrEntry(Engine& engine, GuestWaits& guest_waits, Notes& notes, Counters& counters,
           OptimizedSamples& optimized_samples, Invoker& invoker)
      : engine_(engine),
        guest_waits_(guest_waits),
        notes_(notes),
        counters_(counters),
        optimized_samples_(optimized_samples),
        invoker_(invoker) {}

  // See Runtime::osr_enter, loop_countdown_offset, loop_countdown and counters.
  std::optional<Outcome> enter(MethodId id, LoopId loop, std::span<const uint64_t> args,
                               const uint64_t* frame);
  ptrdiff_t loop_countdown_offset(MethodId m) const noexcept;
  int32_t* loop_countdown(MethodId m) noexcept;
  uint64_t* counters(MethodId m) noexcept;

 private:
  // Handles the due actions of the schedule when the interpreter's countdown has run out. Returns
  // whether it is a flush. A burst cannot run here: a due one is skipped, and a running one ends,
  // unless everything is counted.
  bool host_loop_event(Method& m, AttachedThread& t, LoopId loop);
  bool can_enter_loops(const Method& m) const noexcept;
  // Applies stress at an arrival in the interpreter: makes the code that it can enter.
  void stress_host_arrival(Method& m, AttachedThread& t, LoopId loop);
  // Returns the version that an interpreter can enter at a loop, or null. `tells`: reports a loop
  // that the description does not have.
  const Version* host_loop_code(Method& m, LoopId loop, bool tells);

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
  Counters& counters_;
  OptimizedSamples& optimized_samples_;
  Invoker& invoker_;
};

}  // namespace uptier::tiering
