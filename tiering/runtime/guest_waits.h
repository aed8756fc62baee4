// GuestWaits: the only way by which code below guest frames may wait: for a lock, for a
// compilation, or for the worker's work.
//
// The law of guest.h forbids waiting; these are the exceptions (docs/notes/0003), each counted.
// Code in a steady state has none of them, so a count that keeps rising is a defect. What may run
// the host's functions pins the method that the caller is reading (method_pin.h).
//
//   Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tiering/model/method_pin.h"
#include "uptier/ids.h"
#include "uptier/plan.h"

namespace uptier::jit {
struct SlotLaw;
}

namespace uptier::tiering {

class AttachedThread;
class Compilations;
class EnterableCode;
class FirstCalls;
class HostLoops;
class Quiescence;
struct Engine;
struct Method;
struct Version;

class GuestWaits {
 public:
  enum class Why : uint8_t {
    kFirstCall,   // a call of a method without code
    kEnterable,   // a frame exits optimized code, and there is no baseline code for it
    kExitLimit,   // an exit was taken too often; only the mutex is tried
    kHostLoops,   // a loop in the host's interpreter is hot before its method was described
    kErrorText,   // an error of the host is stored
    kReclaim,     // the outermost invoke has returned while code waits to be freed
    kWorkerless,  // workers = 0: the thread does the worker's work
    kStress,      // stress forces code to be made on the spot
    kCount
  };

  // All outlive this.
  GuestWaits(Engine& engine, Compilations& compilations, FirstCalls& first_calls,
             EnterableCode& enterable_code, HostLoops& host_loops, Quiescence& quiescence)
      : engine_(engine),
        compilations_(compilations),
        first_calls_(first_calls),
        enterable_code_(enterable_code),
        host_loops_(host_loops),
        quiescence_(quiescence) {}

  // Returns how often threads waited for a reason.
  uint64_t count(Why why) const noexcept {
    return counts_[static_cast<size_t>(why)].load(std::memory_order_relaxed);
  }

  // See FirstCalls::first_call and EnterableCode::make_enterable.
  bool first_call(Method& m) noexcept;
  bool make_enterable(Method& m) noexcept;
  // Lets the policy decide about an exit that reached its limit. Returns false if the mutex is
  // held.
  bool try_consider_exit(Method& m, uint32_t exit) noexcept;
  // See HostLoops. They throw if memory runs out.
  bool know_loops(Method& m);
  void report_unknown_loop(Method& m, uint32_t loop, uint32_t loops);
  void refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken);
  // See Quiescence.
  void back_in_host(AttachedThread& t) noexcept;
  // Wakes the worker. `m`: the method that the caller is reading.
  void wake_worker(const Method& m) noexcept;

  // For stress: compiles and installs on the spot; says whether the method may be optimized; and
  // makes the state for an instrumented copy of a loop, if the method may have one.
  void compile_now(const Method& m, const Plan& plan) noexcept;
  bool may_optimize(const Method& m);
  bool make_loop_copy(Method& m, LoopId loop);

 private:
  // Returns the pins of the calling thread's stack; null if it is not attached.
  MethodPin::List* pins() const noexcept;
  void add(Why why) noexcept {
    counts_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }

  Engine& engine_;
  Compilations& compilations_;
  FirstCalls& first_calls_;
  EnterableCode& enterable_code_;
  HostLoops& host_loops_;
  Quiescence& quiescence_;
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Why::kCount)> counts_{};
};

}  // namespace uptier::tiering
