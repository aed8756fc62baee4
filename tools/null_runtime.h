// null_runtime.h: a Runtime that observes nothing, for tools and tests that run code in their own way.
#pragma once

#include "uptier/runtime.h"

namespace uptier::tools {

class NullRuntime : public Runtime {
 public:
  // These runtimes have one kind of entry and no limits: they cannot be stopped.
  const void* entry_address(MethodId m, const Signature&) const override {
    return static_cast<const Runtime*>(this)->entry_address(m);
  }
  Outcome invoke(MethodId m, std::span<const uint64_t> args, const InvokeLimits&) override {
    return static_cast<Runtime*>(this)->invoke(m, args);
  }
  Status interrupt(uint32_t) override { return {}; }
  uint32_t thread_number() const noexcept override { return 0; }
  uint64_t fuel_left() const noexcept override { return UINT64_MAX; }
  void remove_methods(std::span<const MethodId>) override {}
  void retire_methods(std::span<const MethodId>) override {}
  Status attach() override { return {}; }
  void detach() override {}
  void quiescent() noexcept override {}
  void begin_blocked() noexcept override {}
  void end_blocked() noexcept override {}
  Result<NativeStack*> create_stack(void*, size_t) override { return nullptr; }
  Status switch_stack(NativeStack*) override { return {}; }
  Status destroy_stack(NativeStack*) override { return {}; }
  int32_t* loop_countdown(MethodId) noexcept override { return nullptr; }
  ptrdiff_t loop_countdown_offset(MethodId) const noexcept override { return 0; }
  std::optional<Outcome> osr_enter(MethodId, LoopId, std::span<const uint64_t>,
                                   const uint64_t*) override {
    return std::nullopt;
  }
  uint64_t* counters(MethodId) noexcept override { return nullptr; }
  size_t walk(std::span<CallSite>) noexcept override { return 0; }
  size_t trap_stack(std::span<CallSite>) const noexcept override { return 0; }
  std::optional<CodePlace> site_at(const void*) const override { return std::nullopt; }
  CodeImages code_images() override { return {}; }
  void flush() override {}
  Report report() const override { return {}; }
  SavedReport saved_report() const override { return {}; }
  Profile profile() const override { return {}; }
  Status save_profile() override { return {}; }
  Status set(std::string_view, std::string_view) override { return {}; }
  Status observe(Sampling) override { return {}; }
  std::vector<LoopReport> loops() const override { return {}; }
  std::vector<LogRecord> read_log() override { return {}; }
  Result<std::string> ir(MethodId) override { return std::string(); }
  std::string error_of(MethodId) const override { return {}; }
};

}  // namespace uptier::tools
