// ProbePlan: what an instrumented copy counts, and where in the slab of its method.
//
// The slab is private to the process: its layout is the one that is cheapest to count in. The
// published form (a Schema and its counts) is made from it when a snapshot is taken, see
// flow_layout.h.
//
//   flow    counters of blocks, or of the edges outside a spanning tree; all else follows from them
//   events  how often a frame came into the copy or left it at a loop header; counted by slow paths
//   sites   call targets and host probes, each with a table or a sum of its own
//   loops   cycles and trips
//
// Offsets are in bytes from the start of the slab; kNone means that nothing is counted there.
//
// The code that counts, with the thread's slab pointer in r11 (`w` is 8 bytes, 4 narrow):
//
//   kPerThread    inc [r11 + offset]                        narrow: add 1; sbb 0, stops at 2^32-1
//   kRacing       inc [r11 + offset]
//   kInterlocked  lock inc [r11 + offset]
//   kScalable     lock inc below 2^13; from there a routine that adds 2^k with probability 2^-k. k is
//                 chosen to keep the relative error about 2 % at two sigma: with c in
//                 [2^m, 2^(m+1)), k = m - 12, the variances of the octaves add up to at most
//                 (4/3) 2^-14 c^2
//   kDual         kInterlocked at the offset, kScalable at offset + w
//
// Narrow counters of the shared modes are full at kNarrowFull: code does not increment beyond it,
// and the threads that pass it at the same time cannot reach 2^32.
//
// In the shared modes every thread's MethodState::slab points to the same slab. It starts on a
// cache line of its own (64 bytes), so no two methods share a line; counters of one method do. Slow
// paths add to events (loop_enter, loop_leave): with a lock prefix in the shared modes.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/flow_graph.h"
#include "uptier/options.h"

namespace uptier::jit {

// Tells what the instrumented copies of a method count.
struct ProbeRequest {
  FlowMode flow = FlowMode::kEdges;
  CounterMode counters = CounterMode::kPerThread;
  bool narrow = false;
};

struct ProbePlan {
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kNarrowFull = 0xffff0000;
  static constexpr uint32_t kScalableExact = 1u << 13;  // counts below are exact

  struct Site {
    ProbeKind kind = ProbeKind::kBlock;
    uint32_t offset = kNone;
    uint32_t top = 0;      // entries of its table
    bool of_call = false;  // of a call_indirect; otherwise of a probe
  };

  FlowMode flow = FlowMode::kBlocks;
  CounterMode counters = CounterMode::kPerThread;
  bool narrow = false;  // flow counters have 32 bits and stop at 2^32-1

  std::vector<uint32_t> blocks;  // by block site - 1; empty in edge mode
  std::vector<uint32_t> edges;   // as in FlowShape's graph, real edges first; empty in block mode
  std::vector<uint32_t> loop_enter;  // by LoopId; 8-byte words; empty in block mode
  std::vector<uint32_t> loop_leave;  // likewise
  std::vector<Site> sites;           // by site - block_sites - 1
  std::vector<uint32_t> loops;       // by LoopId; one more for the function's body
  bool recent = false;               // tables are recent-weighted
  bool dual_loops = false;           // each execution is timed: sampler::kLoopDualWords per loop
  std::vector<bool> times;           // likewise: whether it is also timed
  uint32_t records = 2048;           // most timed executions of a loop between two flushes
  uint32_t bytes = 0;                // of the slab, a multiple of 8

  // The distance in bytes from one flow counter to the next.
  uint32_t stride() const {
    return (narrow ? 4u : 8u) * (counters == CounterMode::kDual ? 2u : 1u);
  }
  // Returns whether anything but control flow is observed.
  bool has_sites() const;
  // Returns the number of flow counters in the code.
  uint32_t flow_counters() const;
};

// The counters of edge mode: the graph, and for each edge whether it has a counter.
struct CountedFlow {
  FlowShape shape;
  std::vector<bool> chords;
};
// Returns them for a verified body in build order; empty in block mode. Near linear.
CountedFlow counted_flow(const Function& f, FlowMode mode);

// Plans the counters. `f` is in build order and verified. Pure: every build of a body gets the same
// plan. In block mode block k counts at stride * (k - 1). Near linear.
ProbePlan plan_probes(const Function& f, const ProbeRequest& request);
// The same, from counted_flow(f, request.flow).
ProbePlan plan_probes(const Function& f, const ProbeRequest& request, const CountedFlow& flow);

// Returns the plan's words for a probe or for an indirect call's targets; null if it has none, as
// for all sites of inlined bodies. `plan` may be null.
const ProbePlan::Site* planned_site(const Function& f, const ProbePlan* plan, const Inst& i);

}  // namespace uptier::jit
