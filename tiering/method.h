// Method: the stable identity that a host registered, and what is in service for it.
//
// What slow paths of any thread read is atomic and published with release after everything it leads
// to; the rest belongs to whoever holds the mutex named beside it. Versions are never destroyed
// before the runtime is: a freed one has given back its code and stays as a line of the report.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "jit/code/code.h"
#include "sampler/schedule.h"
#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// One compiled body, in service or retired.
struct Version {
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop;  // where it is entered; none for a normal entry
  std::unique_ptr<jit::Code> code;
  uint32_t code_bytes = 0;
  uint64_t compile_ns = 0;
  std::atomic<bool> retired{false};  // relaxed: a slow path that is late goes where it still may
};

// What one thread (or, after it has gone, its remains) has flushed of a method. Cumulative.
struct Stream {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint32_t flushes = 0;
  bool described = false;  // its InstrumentationDesc went to the sink
  std::vector<uint64_t> counts;
};

struct Method {
  Method(MethodId id, Host& host, MethodInfo info) : id(id), host(host), info(std::move(info)) {}

  const MethodId id;
  Host& host;
  const MethodInfo info;

  // Read by slow paths without a lock. Stores are releases that pair with acquire loads there.
  std::atomic<const Version*> plain{nullptr};
  std::atomic<const Version*> instrumented{nullptr};
  std::atomic<const Version*> optimized{nullptr};
  // By LoopId; made before `plain` is published, never resized.
  std::unique_ptr<std::atomic<const Version*>[]> osr;
  std::unique_ptr<std::atomic<bool>[]> osr_asked;  // one request a loop and thread is enough
  std::atomic<uint32_t> slab_words{0};             // published before `instrumented`
  std::atomic<bool> copy_asked{false};
  std::atomic<bool> failed{false};  // the first compilation failed: calls trap
  std::atomic<uint64_t> osr_entries{0};
  // Exact mode: the number of the call at which the next event is due, and who handles it.
  std::atomic<uint64_t> event_call{1};
  std::atomic<bool> event_claimed{false};
  sampler::CallPlan event_plan;  // the claimer's

  // Held while the host describes the body and it is compiled: never two builds of one method.
  std::mutex compile_mutex;
  uint32_t instructions = 0;            // of the IR; set by the first compilation, then constant
  uint32_t loop_count = 0;              // likewise
  std::vector<uint32_t> block_weights;  // instructions by block site - 1, likewise
  Schema schema;                        // likewise

  // Guarded by Runtime's state mutex.
  std::vector<std::unique_ptr<Version>> versions;
  std::map<uint32_t, Stream> streams;  // by thread number
  std::vector<bool> osr_requested;     // by LoopId
  bool optimized_requested = false;
  bool announced = false;  // its MethodDetails went to the sink
  bool optimize_failed = false;
  bool removed = false;
  uint32_t optimized_versions = 0;
  std::string last_error;
};

}  // namespace uptier::tiering
