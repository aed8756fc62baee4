#include "tiering/runtime/runtime_impl.h"

#include <signal.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <string>

#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "sampler/fuel.h"
#include "tiering/base/state_lock.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/image/image_code.h"
#include "tiering/model/positions.h"
#include "tiering/runtime/backtrace.h"
#include "tiering/runtime/code_entries.h"
#include "tiering/runtime/image_maker.h"
#include "tiering/runtime/ir_text.h"
#include "tiering/runtime/live_door.h"
#include "tiering/runtime/shutdown.h"
#include "tiering/runtime/site_lookup.h"
#include "tiering/runtime/trap_stack.h"
#include "tiering/serve/retired_hosts.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace uptier::tiering {
namespace {

Status check_signal(const char* option, uint64_t number) {
  auto n = static_cast<int>(number);
  if (n == 0 || (n >= SIGRTMIN && n <= SIGRTMAX)) return {};
  return Error{ErrorCode::kInvalidArgument,
               "option " + std::string(option) + ": " + std::to_string(n) +
                   " is neither 0 nor a real-time signal: those are " + std::to_string(SIGRTMIN) +
                   " to " + std::to_string(SIGRTMAX)};
}

Status check_find(const Options& o) {
  auto refuse = [](const char* why) { return Error{ErrorCode::kInvalidArgument, why}; };
  if (o.find != FindMode::kCounts && o.sample_hz == 0) {
    return refuse(
        "option find: samples find no method while sample_hz is 0; set sample_hz=1000, "
        "or find=counts");
  }
  bool fixed = o.tier != TierMode::kAuto || o.interval == 1;
  if (o.find == FindMode::kSamples && fixed) {
    return refuse(
        "option find: find=samples needs tier=auto and an interval above 1, because "
        "nothing is observed before a sample finds it");
  }
  return {};
}

}  // namespace

// ---- Life ---------------------------------------------------------------------------------------

Result<std::unique_ptr<Runtime>> RuntimeImpl::create(const Options& options, TraceSink* sink,
                                                     Policy* policy) try {
  if (Status s = options.check(); !s) return s.error();
  if (Status s = check_signal("interrupt_signal", options.interrupt_signal); !s) return s.error();
  if (Status s = check_signal("sample_signal", options.sample_signal); !s) return s.error();
  if (Status s = check_find(options); !s) return s.error();
  Result<StressPlan> plan = StressPlan::parse(options.stress);
  if (!plan) return plan.error();
  jit::StandardFloats floats;
  std::unique_ptr<RuntimeImpl> r(new RuntimeImpl(options, *plan, sink, policy));
  Status s = r->start();
  if (r->makers_.worker.lacks_thread()) {
    Log(options).say(LogLevel::kWarning,
                     "the system refused a thread for the worker: the calling threads compile, as "
                     "with workers=0");
    Options alone = options;
    alone.workers = 0;
    r.reset();
    r.reset(new RuntimeImpl(alone, *plan, sink, policy));
    s = r->start();
  }
  if (!s) return s.error();
  if (!options.listen.empty()) r->door_ = std::make_unique<LiveDoor>(r->engine_);
  return std::unique_ptr<Runtime>(std::move(r));
} catch (const std::exception&) { return out_of_memory("a runtime"); }

RuntimeImpl::RuntimeImpl(const Options& options, const StressPlan& plan, TraceSink* sink,
                         Policy* policy)
    : engine_(*this, options, plan, sink, policy),
      makers_(engine_),
      guest_(engine_, makers_.waits),
      flushes_(engine_, makers_.intake, makers_.worker, guest_.notes, guest_.samples),
      removal_(engine_, makers_.intake, flushes_),
      places_(engine_, makers_.intake, flushes_),
      registry_(engine_, guest_.unattached, places_),
      loops_(engine_),
      attachments_(engine_, makers_.warm_start, flushes_, loops_),
      stacks_(engine_),
      reports_(engine_, guest_.unattached),
      timeline_(engine_, reports_),
      saving_(engine_, makers_.intake, flushes_, timeline_),
      options_(engine_) {
  engine_.guest = &guest_;
  engine_.attachments = &attachments_;
}

Status RuntimeImpl::start() {
  Status s = engine_.start(code_entries());
  return s ? makers_.worker.start() : s;
}

RuntimeImpl::~RuntimeImpl() {
  door_.reset();
  Shutdown(engine_, flushes_, saving_).run();
}

void RuntimeImpl::operator delete(RuntimeImpl* r, std::destroying_delete_t) {
  if (r->forked()) {
#if defined(__SANITIZE_ADDRESS__)
    __lsan_ignore_object(r);
#endif
    return;
  }
  r->~RuntimeImpl();
  static_assert(alignof(RuntimeImpl) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  ::operator delete(r);
}

// ---- Methods ------------------------------------------------------------------------------------

Result<MethodId> RuntimeImpl::add_method(Host& host, MethodInfo info) {
  const Engine::Delivery delivery(engine_);
  if (Status s = engine_.events.check_change("add_method"); !s) return s.error();
  return registry_.add_method(host, std::move(info));
}
std::string RuntimeImpl::error_of(MethodId m) const { return registry_.error_of(m); }
void RuntimeImpl::remove_methods(std::span<const MethodId> methods) {
  const Engine::Delivery delivery(engine_);
  if (engine_.is_in_subscriber("remove_methods")) return;
  removal_.remove_methods(methods);
}
void RuntimeImpl::retire_methods(std::span<const MethodId> methods) {
  const Engine::Delivery delivery(engine_);
  if (engine_.is_in_subscriber("retire_methods")) return;
  removal_.retire_methods(methods);
}
const void* RuntimeImpl::entry_address(MethodId m) const { return registry_.entry_address(m); }
const void* RuntimeImpl::entry_address(MethodId m, const Signature& expected) const {
  return registry_.entry_address(m, expected);
}
Result<std::string> RuntimeImpl::ir(MethodId m) {
  const Engine::Delivery delivery(engine_);
  if (Status s = engine_.events.check_change("ir"); !s) return s.error();
  return ir_text(engine_, m);
}

// ---- Options ------------------------------------------------------------------------------------

Status RuntimeImpl::set(std::string_view name, std::string_view value) {
  const Engine::Delivery delivery(engine_);
  if (Status s = engine_.events.check_change("set"); !s) return s;
  return options_.set(name, value);
}
Status RuntimeImpl::observe(Sampling how) {
  const Engine::Delivery delivery(engine_);
  if (Status s = engine_.events.check_change("observe"); !s) return s;
  return options_.observe(how);
}

// ---- Running ------------------------------------------------------------------------------------

Outcome RuntimeImpl::invoke(MethodId m, std::span<const uint64_t> args) {
  return guest_.invoker.invoke(m, args, {});
}
Outcome RuntimeImpl::invoke(MethodId m, std::span<const uint64_t> args,
                            const InvokeLimits& limits) {
  return guest_.invoker.invoke(m, args, limits);
}
std::optional<Outcome> RuntimeImpl::osr_enter(MethodId m, LoopId loop,
                                              std::span<const uint64_t> args,
                                              const uint64_t* frame) {
  return guest_.osr_entry.enter(m, loop, args, frame);
}
int32_t* RuntimeImpl::loop_countdown(MethodId m) noexcept {
  return guest_.osr_entry.loop_countdown(m);
}
ptrdiff_t RuntimeImpl::loop_countdown_offset(MethodId m) const noexcept {
  return guest_.osr_entry.loop_countdown_offset(m);
}
uint64_t* RuntimeImpl::counters(MethodId m) noexcept { return guest_.osr_entry.counters(m); }
Status RuntimeImpl::interrupt(uint32_t thread) {
  return forked() ? Engine::forked_error() : engine_.stops.interrupt(thread);
}
uint32_t RuntimeImpl::thread_number() const noexcept {
  const AttachedThread* t = engine_.here();
  return t == nullptr ? 0 : t->number();
}
uint64_t RuntimeImpl::fuel_left() const noexcept {
  const AttachedThread* t = engine_.here();
  bool counts = engine_.options.fuel != 0 && t != nullptr && t->context().activation != nullptr;
  return counts ? static_cast<uint64_t>(std::max<int64_t>(sampler::fuel(), 0)) : UINT64_MAX;
}
size_t RuntimeImpl::walk(std::span<CallSite> sites) noexcept { return walk_frames(engine_, sites); }
size_t RuntimeImpl::trap_stack(std::span<CallSite> sites) const noexcept {
  return tiering::trap_stack(engine_, sites);
}
std::optional<CodePlace> RuntimeImpl::site_at(const void* pc) const {
  return find_site(engine_, pc);
}

SourcePositions RuntimeImpl::positions(MethodId m, uint32_t location) const {
  if (forked()) return {};
  HeldState lock(engine_.state_mutex);
  const Method* known = engine_.methods.known(m);
  return known == nullptr ? SourcePositions() : positions_of(*known, location);
}

CodeImages RuntimeImpl::code_images() {
  if (forked()) return {};
  HeldState lock(engine_.state_mutex);
  return engine_.stack_sampling->code_images();
}

// ---- Threads and their stacks -------------------------------------------------------------------

Status RuntimeImpl::attach() {
  if (Status s = engine_.events.check_change("attach"); !s) return s;
  return attachments_.attach();
}
void RuntimeImpl::detach() {
  const Engine::Delivery delivery(engine_);
  if (!engine_.is_in_subscriber("detach")) attachments_.detach();
}
void RuntimeImpl::quiescent() noexcept {
  if (AttachedThread* t = engine_.here()) makers_.quiescence.pass_quiescent(*t);
  engine_.hosts->tell();
}
void RuntimeImpl::begin_blocked() noexcept { makers_.quiescence.begin_blocked(); }
void RuntimeImpl::end_blocked() noexcept { makers_.quiescence.end_blocked(); }
Result<NativeStack*> RuntimeImpl::create_stack(void* low, size_t bytes) {
  return stacks_.create_stack(low, bytes);
}
Status RuntimeImpl::switch_stack(NativeStack* to) { return stacks_.switch_stack(to); }
Status RuntimeImpl::destroy_stack(NativeStack* stack) { return stacks_.destroy_stack(stack); }

// ---- Results ------------------------------------------------------------------------------------

void RuntimeImpl::flush() {
  if (engine_.is_in_subscriber("flush")) return;
  flushes_.flush();
  if (!engine_.forked()) engine_.events.deliver_all();
}
Report RuntimeImpl::report() const { return reports_.report(); }
Report RuntimeImpl::make_report() const { return reports_.make_report(); }
SavedReport RuntimeImpl::saved_report() const { return reports_.saved_report(); }
Profile RuntimeImpl::profile() const { return reports_.profile(); }
Result<ImageMade> RuntimeImpl::write_image(const std::string& file,
                                           std::span<const MethodId> methods) try {
  const Engine::Delivery delivery(engine_);
  if (forked()) return Engine::forked_error();
  if (Status s = engine_.events.check_change("write_image"); !s) return s.error();
  return ImageMaker(engine_).write(file, methods);
} catch (const std::exception&) { return out_of_memory("write_image"); }
ImageReport RuntimeImpl::image_report() const try {
  return forked() ? ImageReport() : engine_.image->report();
} catch (const std::exception&) { return {}; }
bool RuntimeImpl::image_has(const ContentHash& content) const {
  return !forked() && engine_.image->has(content);
}
Status RuntimeImpl::save_profile() {
  const Engine::Delivery delivery(engine_);
  if (Status s = engine_.events.check_change("save_profile"); !s) return s;
  return saving_.save_profile();
}
Result<uint64_t> RuntimeImpl::attach_data(std::string_view type, std::string_view metadata,
                                          std::span<const std::byte> data) try {
  if (forked()) return Engine::forked_error();
  return saving_.sources().attach(type, metadata, data);
} catch (const std::exception&) { return out_of_memory("attach_data"); }
Status RuntimeImpl::attach_data(DataSource& source) try {
  return forked() ? Status(Engine::forked_error()) : saving_.sources().attach(source);
} catch (const std::exception&) { return out_of_memory("attach_data"); }
Result<uint64_t> RuntimeImpl::import_counters(CounterBuffer buffer) try {
  if (forked()) return Engine::forked_error();
  return saving_.sources().import(std::move(buffer));
} catch (const std::exception&) { return out_of_memory("import_counters"); }
Status RuntimeImpl::detach_data(uint64_t data) {
  return forked() ? Status(Engine::forked_error()) : saving_.sources().detach(data);
}
Status RuntimeImpl::detach_data(DataSource& source) {
  return forked() ? Status(Engine::forked_error()) : saving_.sources().detach(source);
}
Result<GatherReport> RuntimeImpl::gather(
    const std::function<Status(std::span<const Piece> pieces)>& take) {
  const Engine::Delivery delivery(engine_);
  if (Status s = engine_.events.check_change("gather"); !s) return s.error();
  return saving_.gather(take);
}
Result<uint64_t> RuntimeImpl::subscribe(EventSubscriber& who, EventKinds kinds) try {
  if (forked()) return Engine::forked_error();
  return engine_.events.subscribe(who, kinds);
} catch (const std::exception&) { return out_of_memory("subscribe"); }
Status RuntimeImpl::unsubscribe(EventSubscriber& who) {
  if (forked()) return Engine::forked_error();
  engine_.events.deliver_all();
  const Engine::Delivery delivery(engine_);
  return engine_.events.unsubscribe(who);
}
std::optional<ProfileAnswer> RuntimeImpl::query(std::string_view stage, std::string_view scope_hash,
                                                std::string_view key) {
  return reports_.query(stage, scope_hash, key);
}
std::vector<LoopReport> RuntimeImpl::loops() const { return loops_.loops(); }
Status RuntimeImpl::set_loop_meter(const LoopMeter& meter) { return loops_.set_loop_meter(meter); }
void RuntimeImpl::keep_loop_executions(uint32_t count) { loops_.keep_loop_executions(count); }
std::vector<LoopExecution> RuntimeImpl::loop_executions() const { return loops_.loop_executions(); }
std::vector<LogRecord> RuntimeImpl::read_log() {
  return engine_.forked() ? std::vector<LogRecord>() : reports_.read_log();
}
Result<LogFormat> RuntimeImpl::add_log_format(std::string_view text) try {
  return forked() ? Result<LogFormat>(Engine::forked_error())
                  : saving_.sources().add_log_format(text);
} catch (const std::exception&) { return out_of_memory("add_log_format"); }
std::string RuntimeImpl::log_format(LogFormat format) const try {
  return forked() ? std::string() : saving_.sources().formats().find(format).value_or("");
} catch (const std::exception&) { return {}; }

}  // namespace uptier::tiering
