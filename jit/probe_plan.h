// ProbePlan: what an instrumented copy counts, and where in the slab of its method.
//
// The slab is private to the process: its layout is what is cheapest to count. What is published (a
// Schema and its counts) is made from it when a snapshot is taken, see profile/flow.h.
//
//   flow    counters of blocks, or of the edges outside a spanning tree; all else follows from them
//   events  how often a frame came into the copy or left it at a loop header; counted by slow paths
//   sites   call targets and host probes, each with a table or a sum of its own
//   loops   cycles and trips
//
// Offsets are in bytes from the start of the slab; kNone means that nothing is counted there.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"
#include "uptier/options.h"

namespace uptier::jit {

struct ProbePlan {
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Site {
    ProbeKind kind = ProbeKind::kBlock;
    uint32_t offset = kNone;
    uint32_t top = 0;  // entries of its table
  };

  CounterMode counters = CounterMode::kPerThread;
  bool narrow = false;  // flow counters have 32 bits and stop at 2^32-1

  std::vector<uint32_t> blocks;      // by block site - 1
  std::vector<uint32_t> edges;       // by edge number - 1, see flow_graph.h
  std::vector<uint32_t> loop_enter;  // by LoopId; 8-byte words
  std::vector<uint32_t> loop_leave;  // likewise
  std::vector<Site> sites;           // by site - block_sites - 1
  std::vector<uint32_t> loops;       // by LoopId; one more for the function's body
  bool recent = false;               // tables are recent-weighted
  uint32_t records = 100;            // timed executions of a loop after each flush
  uint32_t bytes = 0;                // of the slab, a multiple of 8
};

}  // namespace uptier::jit
