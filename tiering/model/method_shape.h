// MethodShape: the constant data from a description of a method, and the state of its loops and
// exits.
//
// Law: made complete by the first description (compile/describer.cc), or by an image
// (image/image_code.h), which precedes any compilation; then published with a release store, and never removed. So methods with compiled
// code have one, and slow paths of that code find it here without a lock and without allocating.
// Before it is made, readers see a method without loops, blocks and exits.
//
//   Thread: constants and atomic members: any; the others as stated.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "jit/analysis/code_shape.h"
#include "jit/analysis/static_shape.h"
#include "jit/ir/function.h"
#include "jit/ir/position_table.h"
#include "sampler/fast_sample.h"
#include "tiering/base/made_later.h"
#include "tiering/model/side_exits.h"
#include "tiering/model/version.h"
#include "uptier/ids.h"

namespace uptier::tiering {

// The constant data of a timed loop.
struct TimedLoop {
  LoopId loop;  // none for the function's body
  LoopId parent;
  uint32_t depth = 0;
  uint32_t height = 0;
  uint32_t location = 0;         // 0: not known
  uint32_t within = UINT32_MAX;  // the next outer timed loop, by its index in the list; or none
};

// Decides when a frame that is left behind in a loop of baseline code asks for a way out: at its
// first arrival at the header that makes it look, then each time that there were a quarter more. So
// questions are few however often frames look, and none comes more than a quarter too late.
//
//   Thread: any.
class OsrQuestions {
 public:
  // Counts an arrival; returns whether it should ask.
  bool arrive() noexcept {
    uint64_t n = arrivals_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (n < next_.load(std::memory_order_relaxed)) return false;
    next_.store(n + n / 4 + 1, std::memory_order_relaxed);
    return true;
  }
  // A question was answered with a request for code: the next one is about frames behind that.
  void begin_anew() noexcept {
    arrivals_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> arrivals_{0}, next_{0};
};

struct MethodShape {
  // `loops`: the number of loops in the body, or as the host says.
  explicit MethodShape(uint32_t loops = 0)
      : loop_count(loops),
        osr(std::make_unique<std::atomic<const Version*>[]>(loops)),
        osr_from_host(std::make_unique<std::atomic<const Version*>[]>(loops)),
        osr_asked(std::make_unique<std::atomic<bool>[]>(loops)),
        osr_questions(std::make_unique<OsrQuestions[]>(loops)),
        osr_requested(loops),
        osr_versions(loops) {}

  // ---- Constant -----------------------------------------------------------------------------------

  const uint32_t loop_count;
  uint64_t cfg_hash = 0;
  uint32_t instructions = 0;            // of the IR
  std::vector<uint32_t> block_weights;  // instructions by block site - 1
  jit::StaticShape static_shape;        // with a profile that outlives the process only; else empty
  jit::PositionTable positions;         // that the body was described with; may be empty
  std::vector<uint32_t> loop_locations;  // by LoopId; 0: none
  // Belongs to the host: a caller may inline the body after the host was destroyed.
  const void* alias_scope = nullptr;

  // ---- By LoopId ----------------------------------------------------------------------------------

  // In service. Stores are releases that pair with acquire loads in slow paths.
  std::unique_ptr<std::atomic<const Version*>[]> osr;
  std::unique_ptr<std::atomic<const Version*>[]> osr_from_host;
  std::unique_ptr<std::atomic<bool>[]> osr_asked;  // one request per loop and thread is enough
  std::unique_ptr<OsrQuestions[]> osr_questions;
  std::atomic<bool> osr_began{false};  // a version for any loop was requested; relaxed
  // With the state mutex: whether one has been requested, and how many were made.
  std::vector<bool> osr_requested;
  std::vector<uint32_t> osr_versions;
  // Made when loops may change copies on the quick path, and never moved.
  std::unique_ptr<sampler::LoopCell[]> loop_cells;
  std::vector<jit::LoopRange> loop_ranges;  // of the latest instrumented copy; state mutex

  // ---- Planned with Method::probes, and then constant; the counts of exits rise ---------------------

  MethodExits exits;
  std::vector<TimedLoop> timed_loops;  // by site; see observe/timed_loops.h
  std::vector<uint64_t> shared_slab;   // memory of the counters that threads share
  uint64_t* shared = nullptr;          // its aligned start, or null
  // Only with a profile that outlives the process; saved_calls.cc.
  MadeLater<CodeShape> code_shape;
  std::vector<jit::DirectCall> direct_calls;

  // With the turn: made ahead of the compilation; or null.
  std::unique_ptr<jit::Function> described;
  // With the turn: the shape came from an image, and the host has not described the method in this
  // process.
  bool undescribed = false;

  // Counts of frames. Relaxed: for reports, and to see that something has happened.
  std::atomic<uint64_t> osr_entries{0};
  std::atomic<uint64_t> osr_outs{0};  // frames of older code that moved to newer code
  std::atomic<uint64_t> left{0};      // frames that left optimized code, or baseline code for the
                                      // host
  std::atomic<uint64_t> left_for_host{0};  // of these, to the host
};

}  // namespace uptier::tiering
