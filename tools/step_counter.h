// Counts how often each instruction of compiled code starts, by single steps of the processor.
//
//   StepCounter steps({{address, bytes}, ...});
//   steps.begin();  ... call compiled code ...  steps.end();
//   steps.starts(address)
//
// Every step is a signal, so a run takes microseconds for each instruction. One counter at a time;
// it counts the steps of the thread that began.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <vector>

#include <ucontext.h>

namespace uptier::tools {

class StepCounter {
 public:
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };

  // The ranges do not overlap.
  explicit StepCounter(const std::vector<Range>& ranges) {
    for (const Range& r : ranges) {
      if (r.bytes != 0) parts_.push_back({r.address, std::vector<uint32_t>(r.bytes)});
    }
    std::ranges::sort(parts_, {}, &Part::address);
    active_ = this;
    struct sigaction action = {};
    action.sa_sigaction = &StepCounter::on_step;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGTRAP, &action, &before_);
  }
  ~StepCounter() {
    ::sigaction(SIGTRAP, &before_, nullptr);
    active_ = nullptr;
  }
  StepCounter(const StepCounter&) = delete;
  StepCounter& operator=(const StepCounter&) = delete;

  // Sets and clears the processor's trap flag. The red zone below the stack pointer is kept.
  void begin() {
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), "
        "%%rsp" ::
            : "cc", "memory");
  }
  void end() {
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-0x101, (%%rsp)\n\tpopfq\n\t"
        "lea 128(%%rsp), %%rsp" ::
            : "cc", "memory");
  }

  // Returns how often the instruction at an address of a range started; 0 outside of all ranges.
  uint64_t starts(uint64_t address) const {
    const Part* p = part_of(address);
    return p == nullptr ? 0 : p->starts[address - p->address];
  }
  // Returns the number of steps, those outside of the ranges included.
  uint64_t steps() const { return steps_; }

 private:
  struct Part {
    uint64_t address;
    std::vector<uint32_t> starts;  // by offset
  };

  // Async-signal-safe.
  Part* part_of(uint64_t address) const {
    auto after = std::ranges::upper_bound(parts_, address, {}, &Part::address);
    if (after == parts_.begin()) return nullptr;
    const Part& p = *(after - 1);
    return address - p.address < p.starts.size() ? const_cast<Part*>(&p) : nullptr;
  }

  // The step ended before the instruction at the interrupted address.
  static void on_step(int, siginfo_t*, void* context) {
    ++active_->steps_;
    auto pc = static_cast<uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    if (Part* p = active_->part_of(pc)) ++p->starts[pc - p->address];
  }

  static inline StepCounter* active_ = nullptr;
  std::vector<Part> parts_;
  uint64_t steps_ = 0;
  struct sigaction before_ = {};
};

}  // namespace uptier::tools
