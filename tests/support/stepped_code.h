// Counts how often each instruction of compiled code starts, by single steps of the processor.
//
//   StepCounter steps({&code});
//   steps.begin();  ... call compiled code ...  steps.end();
//   steps.starts(code, offset)
//
// Every step is a signal, so a run takes microseconds for each instruction. One counter at a time;
// it counts the steps of the thread that began.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <vector>

#include <ucontext.h>

#include "jit/code/code.h"

namespace uptier::test {

class StepCounter {
 public:
  explicit StepCounter(const std::vector<const jit::Code*>& codes) {
    for (const jit::Code* c : codes) parts_.push_back({c, std::vector<uint32_t>(c->size())});
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

  // Returns how often the instruction at an offset started.
  uint64_t starts(const jit::Code& code, uint32_t offset) const {
    for (const Part& p : parts_) {
      if (p.code == &code) return offset < p.starts.size() ? p.starts[offset] : 0;
    }
    return 0;
  }

 private:
  struct Part {
    const jit::Code* code;
    std::vector<uint32_t> starts;  // by offset
  };

  // The step ended before the instruction at the interrupted address.
  static void on_step(int, siginfo_t*, void* context) {
    auto pc = reinterpret_cast<const void*>(
        static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    for (Part& p : active_->parts_) {
      uint32_t offset = p.code->offset_of(pc);
      if (offset == UINT32_MAX) continue;
      ++p.starts[offset];
      return;
    }
  }

  static inline StepCounter* active_ = nullptr;
  std::vector<Part> parts_;
  struct sigaction before_ = {};
};

}  // namespace uptier::test
