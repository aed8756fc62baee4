// RuntimeImpl: the runtime behind the public interface. It owns the engine and the operations on
// it, and forwards each call to one of them.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <vector>

#include "tiering/runtime/attachments.h"
#include "tiering/runtime/code_makers.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/flushes.h"
#include "tiering/runtime/guest.h"
#include "tiering/runtime/host_stacks.h"
#include "tiering/runtime/loop_reports.h"
#include "tiering/runtime/option_changes.h"
#include "tiering/runtime/place_taking.h"
#include "tiering/runtime/registry.h"
#include "tiering/runtime/removal.h"
#include "tiering/runtime/report_maker.h"
#include "tiering/runtime/saving.h"
#include "tiering/runtime/timeline_maker.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class LiveDoor;

class RuntimeImpl final : public Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(const Options& options, TraceSink* sink,
                                                 Policy* policy);
  ~RuntimeImpl() override;
  // In the child of a fork it does nothing: members cannot be destroyed, because threads that wait
  // on them no longer exist.
  static void operator delete(RuntimeImpl* r, std::destroying_delete_t);

  // See uptier/runtime.h.
  Result<MethodId> add_method(Host& host, MethodInfo info) override;
  std::string error_of(MethodId m) const override;
  void remove_methods(std::span<const MethodId> methods) override;
  void retire_methods(std::span<const MethodId> methods) override;
  const void* entry_address(MethodId m) const override;
  const void* entry_address(MethodId m, const Signature& expected) const override;
  Status set(std::string_view name, std::string_view value) override;
  Status observe(Sampling how) override;
  Outcome invoke(MethodId m, std::span<const uint64_t> args) override;
  Outcome invoke(MethodId m, std::span<const uint64_t> args, const InvokeLimits& limits) override;
  Status interrupt(uint32_t thread) override;
  uint32_t thread_number() const noexcept override;
  uint64_t fuel_left() const noexcept override;
  size_t walk(std::span<CallSite> sites) noexcept override;
  size_t trap_stack(std::span<CallSite> sites) const noexcept override;
  std::optional<CodePlace> site_at(const void* pc) const override;
  SourcePositions positions(MethodId m, uint32_t location) const override;
  CodeImages code_images() override;
  Status attach() override;
  void detach() override;
  void quiescent() noexcept override;
  void begin_blocked() noexcept override;
  void end_blocked() noexcept override;
  Result<NativeStack*> create_stack(void* low, size_t bytes) override;
  Status switch_stack(NativeStack* to) override;
  Status destroy_stack(NativeStack* stack) override;
  int32_t* loop_countdown(MethodId m) noexcept override;
  ptrdiff_t loop_countdown_offset(MethodId m) const noexcept override;
  std::optional<Outcome> osr_enter(MethodId m, LoopId loop, std::span<const uint64_t> args,
                                   const uint64_t* frame) override;
  uint64_t* counters(MethodId m) noexcept override;
  void flush() override;
  Report report() const override;
  SavedReport saved_report() const override;
  Profile profile() const override;
  Status save_profile() override;
  Result<ImageMade> write_image(const std::string& file,
                                std::span<const MethodId> methods) override;
  ImageReport image_report() const override;
  bool image_has(const ContentHash& content) const override;
  Result<uint64_t> attach_data(std::string_view type, std::string_view metadata,
                               std::span<const std::byte> data) override;
  Status attach_data(DataSource& source) override;
  Result<uint64_t> import_counters(CounterBuffer buffer) override;
  Status detach_data(uint64_t data) override;
  Status detach_data(DataSource& source) override;
  Result<GatherReport> gather(
      const std::function<Status(std::span<const Piece> pieces)>& take) override;
  Result<uint64_t> subscribe(EventSubscriber& who, EventKinds kinds) override;
  Status unsubscribe(EventSubscriber& who) override;
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key) override;
  std::vector<LoopReport> loops() const override;
  Status set_loop_meter(const LoopMeter& meter) override;
  void keep_loop_executions(uint32_t count) override;
  std::vector<LoopExecution> loop_executions() const override;
  std::vector<LogRecord> read_log() override;
  Result<LogFormat> add_log_format(std::string_view text) override;
  std::string log_format(LogFormat format) const override;
  Result<std::string> ir(MethodId m) override;

  // Further functions for the C API.
  Report make_report() const;  // throws std::bad_alloc, which the C API catches
  bool forked() const noexcept { return engine_.forked(); }
  const Engine& engine() const { return engine_; }
  const GuestWaits& waits() const { return makers_.waits; }

 private:
  RuntimeImpl(const Options& options, const StressPlan& plan, TraceSink* sink, Policy* policy);
  Status start();

  Engine engine_;
  CodeMakers makers_;
  Guest guest_;
  Flushes flushes_;
  Removal removal_;
  PlaceTaking places_;
  Registry registry_;
  LoopReports loops_;
  Attachments attachments_;
  HostStacks stacks_;
  ReportMaker reports_;
  TimelineMaker timeline_;
  Saving saving_;
  OptionChanges options_;
  std::unique_ptr<LiveDoor> door_;  // null without Options::listen
};

}  // namespace uptier::tiering
