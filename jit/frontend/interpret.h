// interpret.h: the reference interpreter, the oracle that both compilers are compared with.
//
// It executes one instruction after the other, using the functions of semantics.h, in the simplest
// way: every value has a 64-bit word in its frame, and frames are on a heap stack, so deep
// recursion needs no native stack. It touches no memory except the given ranges, so no program can
// crash it.
//
// It counts the same as probes: block probes, host probes and call sites by site, edges, and visits
// of each loop header. Events of an inlined body count for its method. Counts of the first n steps
// are exact whatever ends the run. Other observations of probes go to an observer.
//
//   Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/module.h"

namespace uptier::jit {

// Memory that programs may read, or read and write: host addresses base..base+size-1.
struct MemoryRange {
  uint64_t base = 0;
  uint64_t size = 0;
  bool writable = true;
};

// The outcome of a function outside the interpreter: a result, or a trap.
struct OutsideResult {
  uint64_t bits = 0;
  TrapCode trap = TrapCode::kNone;
};

// Receives the events that the instrumented copy of a method would observe, in order.
class InterpretObserver {
 public:
  virtual ~InterpretObserver() = default;
  // A probe of the host. `seen` is its value as ProbeKind describes it, 0 if it has none.
  virtual void probe(MethodId, const Inst& /*probe*/, uint64_t /*seen*/) {}
  // The target of a call_indirect, before the call.
  virtual void target(MethodId, SiteId, uint64_t /*target*/) {}
  // A loop is entered through an edge from outside of it; a function, with LoopId(loop_count).
  virtual void entered(MethodId, LoopId) {}
  // A loop is left through an edge, or by returning. Innermost first, before loops that are
  // entered.
  virtual void left(MethodId, LoopId) {}
  // A method of the module is called from a site of another; entered() follows.
  virtual void called(MethodId, SiteId, MethodId /*callee*/) {}
  // A block of the method's own body begins.
  virtual void block(MethodId, SiteId) {}
  // A loop header is visited; after entered() if this is the first visit.
  virtual void iterated(MethodId, LoopId) {}
};

struct InterpretOptions {
  uint64_t step_limit = 100'000'000;  // instructions, over all calls of a run
  uint32_t depth_limit = 10'000;      // frames; one more is trap stack_exhausted
  // An access outside all of these is trap out_of_bounds_memory if it has kMemTraps, and otherwise
  // stops the run.
  std::vector<MemoryRange> memory = {};
  // Host functions, and methods that are not in the module. A run that needs one stops if it is not
  // given.
  std::function<OutsideResult(const HostCallee&, std::span<const uint64_t>)> call_host = {};
  std::function<OutsideResult(MethodId, std::span<const uint64_t>)> call_method = {};
  InterpretObserver* observer = nullptr;
};

// Returns the value that a probe sees for a value of the type.
uint64_t observed_bits(Type t, uint64_t bits);

struct InterpretOutcome {
  enum class Kind : uint8_t {
    kReturned,
    kTrapped,
    kStopped,  // the program did something that compiled code must never do, or ran too long: see `why`
  };
  Kind kind = Kind::kStopped;
  uint64_t bits = 0;  // the result, zero-extended; 0 for functions without result
  TrapCode trap = TrapCode::kNone;
  MethodId method;        // of the instruction that trapped
  uint32_t location = 0;  // of the instruction that trapped
  std::string why;
  // If `trap` is kGuardFailed, the data of that guard.
  GuardReason reason = GuardReason::kType;
  uint64_t pc = 0;
  uint32_t inline_depth = 0;
  std::vector<uint64_t> slots;
};

class Interpreter {
 public:
  // Every function of `module` must pass the verifier. The module must outlive the interpreter.
  explicit Interpreter(const Module& module, InterpretOptions options = {});

  // Calls a function with the bits of its arguments. Counts add up over runs.
  InterpretOutcome run(MethodId method, std::span<const uint64_t> args);

  // Executions by site (index 0 is site 1). Empty if the function was never entered.
  std::span<const uint64_t> site_counts(MethodId m) const { return counts_[m.index()].sites; }
  // Visits of loop headers by LoopId. Empty if the function was never entered.
  std::span<const uint64_t> loop_counts(MethodId m) const { return counts_[m.index()].loops; }
  // Executions of edges by number (see flow_graph.h; index 0 is edge 1). Empty if the function was
  // never entered.
  std::span<const uint64_t> edge_counts(MethodId m) const { return counts_[m.index()].edges; }
  // Calls so far.
  uint64_t entries(MethodId m) const { return counts_[m.index()].entries; }
  // The number of methods with counts: those of the module when the interpreter was created.
  uint32_t methods() const { return static_cast<uint32_t>(counts_.size()); }
  // Instructions executed so far, over all runs.
  uint64_t steps() const { return steps_; }

  // The ref with which call_indirect calls a method of the module; not the address of anything.
  static uint64_t address_of(MethodId m) { return kMethodBase + 16 * uint64_t{m.index()}; }

 private:
  struct Frame {
    MethodId method;
    std::vector<uint64_t> values;
    Block block;
    uint32_t position = 0;
    Value result_to;                    // of the caller: receives the result of this frame
    InstId frame_state;                 // the last one seen in the current block
    std::vector<uint64_t> memory = {};  // of frame_memory
  };
  struct Counts {
    std::vector<uint64_t> sites;
    std::vector<uint64_t> loops;
    std::vector<uint64_t> edges;
    std::vector<uint32_t> numbers;  // of Function::edges
    uint64_t entries = 0;
  };
  static constexpr uint64_t kMethodBase = 0x4d45'0000'0000;

  void enter(MethodId m, std::span<const uint64_t> args, Value result_to, const Inst* call);
  void step();
  void execute(const Inst& i);
  void evaluate_inst(const Inst& i);
  void load(const Inst& i);
  void store(const Inst& i);
  void bulk(const Inst& i);
  void call(const Inst& i);
  void call_indirect(const Inst& i);
  void call_host(const Inst& i);
  void follow(const Edge& e);
  void leave(const Inst& i);
  void fail_guard(const Inst& i);
  void count_rounds(const Inst& i);
  void count_site(uint32_t body, SiteId site, uint64_t times = 1);
  void observe(const Inst& i);
  const LoopForest& forest();

  // Returns the host address of an access, or null after ending the run.
  void* place(const Inst& i, size_t first, unsigned size, bool write);
  void* place_at(const Inst& i, uint64_t address, unsigned size, bool write);
  void finish(const Inst& i, OutsideResult r);
  void trap(const Inst& i, TrapCode code);
  void stop(std::string why);

  Frame& frame() { return frames_.back(); }
  const Function& function() const { return module_.functions[frames_.back().method.index()]; }
  uint64_t get(const Inst& i, size_t operand) { return frame().values[at(i, operand).index()]; }
  Value at(const Inst& i, size_t operand) const { return function().args(i)[operand]; }
  void set(Value v, uint64_t bits);
  std::vector<uint64_t> words(std::span<const Value> values);

  const Module& module_;
  InterpretOptions options_;
  std::vector<Counts> counts_;
  std::vector<std::optional<LoopForest>> forests_;  // computed when an observer needs them
  std::vector<Frame> frames_;
  InterpretOutcome outcome_;
  bool running_ = false;
  uint64_t steps_ = 0;
  uint64_t last_step_ = 0;
};

}  // namespace uptier::jit
