// The runtime of the C API: its life, calls, threads.
#include <algorithm>
#include <cerrno>

#include "profile/trace/trace_file.h"
#include "sampler/context.h"
#include "tiering/c_api/c_api.h"
#include "tiering/runtime/backtrace.h"
#include "tiering/runtime/runtime_impl.h"
#include "uptier/interrupted.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

uptier_outcome to_c_outcome(const Outcome& o) {
  return {o.bits, o.trap.detail, static_cast<uptier_trap>(o.trap.code), o.trap.location,
          to_c<uptier_method>(o.trap.method)};
}

// Says whether the calling thread is attached to the runtime. Costs three loads.
bool is_attached(const uptier_runtime& r) {
  return static_cast<const RuntimeImpl&>(*r.runtime).engine().here() != nullptr;
}

CLog log_of(const uptier_options* options) { return options != nullptr ? options->log : CLog(); }

// Starts a runtime that traces to `sink` and asks `policy`, which may be null.
uptier_status start(Options o, const CLog& log, std::unique_ptr<TraceSink> sink,
                    std::unique_ptr<Policy> policy, uptier_runtime** out, uptier_error* error) {
  auto made = std::make_unique<uptier_runtime>(o);
  made->c_log = log;
  if (log.function != nullptr) {
    o.log = &CLog::write;
    o.log_user = &made->c_log;
  }
  made->sink = std::move(sink);
  made->policy = std::move(policy);
  Result<std::unique_ptr<Runtime>> runtime =
      Runtime::create(o, made->sink.get(), made->policy.get());
  if (!runtime) return fail(error, runtime.error());
  made->runtime = std::move(*runtime);
  *out = made.release();
  return UPTIER_OK;
}

// Passes the bytes of a trace on to C.
class CSink final : public profile::ByteSink {
 public:
  explicit CSink(const uptier_trace_sink& to) : to_(to) {}
  // Noexcept: an exception of the callback must not unwind through the runtime.
  int64_t write(profile::ByteSpan bytes) noexcept override {
    int error = to_.write(to_.user, bytes.data(), bytes.size());
    return error == 0 ? static_cast<int64_t>(bytes.size()) : -last_word(error);
  }
  int close() noexcept override {
    return to_.close == nullptr ? 0 : -last_word(to_.close(to_.user));
  }

 private:
  // TraceWriter retries after EINTR; a callback is not retried, so EINTR becomes EIO.
  static int last_word(int error) { return error < 0 || error == EINTR ? EIO : error; }

  uptier_trace_sink to_;
};

// Starts a runtime from C arguments; `sink` and `policy` may be null.
uptier_status start_with(const uptier_options* options, const uptier_trace_sink* sink,
                         std::unique_ptr<Policy> policy, uptier_runtime** out,
                         uptier_error* error) {
  constexpr size_t kFirst = UPTIER_C_END(uptier_trace_sink, close);
  uptier_trace_sink to{};
  if (const char* why = sink == nullptr ? nullptr : read_struct(sink, kFirst, to)) {
    return fail(error, why == kNewer ? UPTIER_UNSUPPORTED : UPTIER_INVALID_ARGUMENT,
                std::string("uptier_trace_sink: ") + why);
  }
  if (sink != nullptr && to.write == nullptr) return bad_argument(error, "the sink has no write");
  const Options o = options != nullptr ? options->options : Options();
  if (Status s = o.check(); !s) return fail(error, s.error());
  std::unique_ptr<TraceSink> writer;
  if (sink != nullptr) writer = std::make_unique<profile::TraceWriter>(std::make_unique<CSink>(to));
  return start(o, log_of(options), std::move(writer), std::move(policy), out, error);
}

uptier_status trapped(const uptier_runtime& runtime, uptier_error* error, const CMethod& called,
                      const Outcome& o) {
  if (error == nullptr) return UPTIER_TRAPPED;
  std::string text = called.name() + ": " + trap_text(o.trap.code);
  bool no_code = o.trap.code == TrapCode::kNoCode;
  std::string why = no_code ? runtime.runtime->error_of(o.trap.method) : "";
  if (!why.empty()) return fail(error, UPTIER_TRAPPED, text + ": " + why);
  if (o.trap.method.valid()) text += " at location " + std::to_string(o.trap.location);
  return fail(error, UPTIER_TRAPPED, text);
}

}  // namespace

bool uptier::tiering::forked(const uptier_runtime& runtime) {
  return static_cast<const RuntimeImpl&>(*runtime.runtime).forked();
}

Report uptier::tiering::report_of(const uptier_runtime& runtime) {
  return static_cast<const RuntimeImpl&>(*runtime.runtime).make_report();
}

uptier_status uptier::tiering::check_change(const uptier_runtime& runtime, const char* call,
                                            uptier_error* error) {
  Status s = static_cast<const RuntimeImpl&>(*runtime.runtime).engine().events.check_change(call);
  return s ? UPTIER_OK : fail(error, s.error());
}

uptier_status uptier::tiering::fail_forked(uptier_error* error) {
  return fail(error, Engine::forked_error());
}

extern "C" {

uptier_status uptier_runtime_create(const uptier_options* options, const char* trace_path,
                                    uptier_runtime** out, uptier_error* error) noexcept try {
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const Options o = options != nullptr ? options->options : Options();
  if (Status s = o.check(); !s) return fail(error, s.error());
  const CLog log = log_of(options);
  if (trace_path == nullptr) return start(o, log, nullptr, nullptr, out, error);
  Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(trace_path);
  return sink ? start(o, log, std::move(*sink), nullptr, out, error) : fail(error, sink.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_create_traced(const uptier_options* options,
                                           const uptier_trace_sink* sink, uptier_runtime** out,
                                           uptier_error* error) noexcept try {
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (sink == nullptr) return bad_argument(error, "the sink is NULL");
  return start_with(options, sink, nullptr, out, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_create_with_policy(const uptier_options* options,
                                                const uptier_trace_sink* sink,
                                                const uptier_policy* policy, uptier_runtime** out,
                                                uptier_error* error) noexcept try {
  if (out == nullptr) return bad_argument(error, "out is NULL");
  uptier_policy p;
  if (uptier_status bad = read_policy(policy, p, error); bad != UPTIER_OK) return bad;
  return start_with(options, sink, std::make_unique<CPolicy>(p), out, error);
} catch (const std::exception&) { return ran_out(error); }

void uptier_runtime_destroy(uptier_runtime* runtime) noexcept {
  if (runtime == nullptr || forked(*runtime)) return;
  // Subscribers of the last events may still use the handle, so it names the runtime meanwhile.
  delete runtime->runtime.get();
  (void)runtime->runtime.release();  // no host is called from here on
  runtime->methods.drop_all();
  delete runtime;
}

uptier_status uptier_runtime_invoke(uptier_runtime* runtime, uptier_method method,
                                    const uint64_t* args, size_t count, uptier_outcome* out,
                                    uptier_error* error) noexcept {
  return uptier_runtime_invoke_limited(runtime, method, args, count, 0, 0, out, error);
}

uptier_status uptier_runtime_invoke_limited(uptier_runtime* runtime, uptier_method method,
                                            const uint64_t* args, size_t count, uint64_t timeout_ns,
                                            uint64_t fuel, uptier_outcome* out,
                                            uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  std::string miscounted = wrong_count(count, m->signature());
  if (!miscounted.empty()) return bad_argument(error, miscounted);
  if (args == nullptr && count != 0) return bad_argument(error, "the arguments are NULL");
  if (uptier_status bad = check_change(*runtime, "invoke", error); bad != UPTIER_OK) return bad;
  if (!is_attached(*runtime)) {
    // Attach here, not in Runtime::invoke, so that a lack of memory differs from a trap.
    ThreadScope attached(*runtime->runtime);
    if (!attached.status()) return fail(error, attached.status().error());
    return uptier_runtime_invoke_limited(runtime, method, args, count, timeout_ns, fuel, out,
                                         error);
  }
  if (fuel != 0 && !runtime->counts_fuel) {
    return bad_argument(error,
                        "a limit of fuel needs the option fuel; without it, fuel is not counted");
  }
  Outcome o = runtime->runtime->invoke(m->id, std::span(args, count),
                                       InvokeLimits{.timeout_ns = timeout_ns, .fuel = fuel});
  if (out != nullptr) *out = to_c_outcome(o);
  return o.ok() ? UPTIER_OK : trapped(*runtime, error, *m, o);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_interrupt(uptier_runtime* runtime, uint32_t thread,
                                       uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  Status s = runtime->runtime->interrupt(thread);
  return s ? UPTIER_OK : fail(error, s.error());
}

int uptier_interrupted(void) noexcept { return interrupted() ? 1 : 0; }

uint32_t uptier_runtime_thread_number(const uptier_runtime* runtime) noexcept {
  return runtime == nullptr ? 0 : runtime->runtime->thread_number();
}

uint64_t uptier_runtime_fuel_left(const uptier_runtime* runtime) noexcept {
  return runtime == nullptr ? UINT64_MAX : runtime->runtime->fuel_left();
}

uptier_status uptier_runtime_loop_countdown(uptier_runtime* runtime, uptier_method method,
                                            int32_t** out, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  if (forked(*runtime)) return fail_forked(error);
  if (!is_attached(*runtime)) return bad_argument(error, "the thread is not attached");
  *out = runtime->runtime->loop_countdown(m->id);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_loop_countdown_offset(const uptier_runtime* runtime,
                                                   uptier_method method, ptrdiff_t* out,
                                                   uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  *out = runtime->runtime->loop_countdown_offset(m->id);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

void* uptier_thread_base(void) noexcept { return Runtime::thread_base(); }

uptier_status uptier_runtime_osr_enter(uptier_runtime* runtime, uptier_method method,
                                       uptier_loop loop, const uint64_t* args, size_t count,
                                       const uint64_t* frame, int* entered, uptier_outcome* out,
                                       uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (entered == nullptr || frame == nullptr) {
    return bad_argument(error, "entered or frame is NULL");
  }
  *entered = 0;
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  std::string miscounted = wrong_count(count, m->signature());
  if (!miscounted.empty()) return bad_argument(error, miscounted);
  if (args == nullptr && count != 0) return bad_argument(error, "the arguments are NULL");
  if (forked(*runtime)) return fail_forked(error);
  if (!is_attached(*runtime)) return bad_argument(error, "the thread is not attached");
  if (uptier_status bad = check_change(*runtime, "osr_enter", error); bad != UPTIER_OK) return bad;
  LoopId id = from_c<LoopId>(loop);
  if (!id.valid()) return bad_argument(error, "the loop is none");
  std::optional<Outcome> o = runtime->runtime->osr_enter(m->id, id, std::span(args, count), frame);
  if (!o) return UPTIER_OK;
  *entered = 1;
  if (out != nullptr) *out = to_c_outcome(*o);
  return o->ok() ? UPTIER_OK : trapped(*runtime, error, *m, *o);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_set(uptier_runtime* runtime, const char* name, const char* value,
                                 uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (name == nullptr || value == nullptr) return bad_argument(error, "name or value is NULL");
  Status s = runtime->runtime->set(name, value);
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_observe(uptier_runtime* runtime, uptier_sampling how,
                                     uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (how > UPTIER_SAMPLING_EVERY) return bad_argument(error, "there is no such sampling");
  Status s = runtime->runtime->observe(static_cast<Sampling>(how));
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_raise(uptier_trap code, uint64_t detail) noexcept try {
  if (code == UPTIER_TRAP_NONE || code >= UPTIER_TRAP_COUNT) return UPTIER_INVALID_ARGUMENT;
  // Without an invoke, the trap would stay pending until an unrelated call took it.
  if (sampler::current_context()->activation == nullptr) return UPTIER_INVALID_ARGUMENT;
  Runtime::raise(static_cast<TrapCode>(code), detail);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(nullptr); }

int uptier_call_site(const void* return_address, uptier_site* out) noexcept {
  std::optional<CallSite> at = Runtime::call_site(return_address);
  if (!at || out == nullptr) return 0;
  *out = {to_c<uptier_method>(at->method), at->location};
  return 1;
}

size_t uptier_runtime_walk(uptier_runtime* runtime, uptier_site* sites, size_t capacity) noexcept {
  struct {
    uptier_site* sites;
    size_t capacity, count;
  } all{sites, capacity, 0};
  if (runtime == nullptr || sites == nullptr || capacity == 0) return 0;
  walk_frames(
      static_cast<const RuntimeImpl&>(*runtime->runtime).engine(),
      [](MethodId m, uint32_t location, void* to) {
        auto& a = *static_cast<decltype(all)*>(to);
        a.sites[a.count++] = {to_c<uptier_method>(m), location};
        return a.count != a.capacity;
      },
      &all);
  return all.count;
}

size_t uptier_runtime_trap_stack(const uptier_runtime* runtime, uptier_site* sites,
                                 size_t capacity) noexcept {
  if (runtime == nullptr || sites == nullptr) return 0;
  CallSite frames[64];
  const size_t count =
      runtime->runtime->trap_stack(std::span(frames).first(std::min<size_t>(capacity, 64)));
  for (size_t i = 0; i < count; ++i) {
    sites[i] = {to_c<uptier_method>(frames[i].method), frames[i].location};
  }
  return count;
}

size_t uptier_runtime_site_at(const uptier_runtime* runtime, const void* pc, uptier_place* place,
                              uptier_place_frame* frames, size_t capacity) noexcept try {
  if (runtime == nullptr || (frames == nullptr && capacity != 0)) return 0;
  std::optional<CodePlace> at = runtime->runtime->site_at(pc);
  if (!at) return 0;
  if (place != nullptr) {
    *place = {.version = at->version,
              .tier = static_cast<uptier_tier>(at->tier),
              .instrumented = at->copy == Copy::kInstrumented,
              .stub = at->stub,
              .loop = at->loop.valid() ? at->loop.index() : UINT32_MAX};
  }
  for (size_t i = 0; i < std::min(capacity, at->frames.size()); ++i) {
    const PlaceFrame& f = at->frames[i];
    frames[i] = {to_c<uptier_method>(f.method), f.site, f.location};
  }
  return at->frames.size();
} catch (const std::exception&) { return 0; }

size_t uptier_runtime_positions(const uptier_runtime* runtime, uptier_method method,
                                uint32_t location, uptier_position_visitor visit, void* to) noexcept
    try {
  const MethodId m = from_c<MethodId>(method);
  if (runtime == nullptr || visit == nullptr || !m.valid()) return 0;
  const SourcePositions found = runtime->runtime->positions(m, location);
  for (const SourcePosition& p : found) {
    const uptier_position position{
        p.file.c_str(), p.function.empty() ? nullptr : p.function.c_str(), p.line, p.column};
    visit(to, &position);
  }
  return found.size();
} catch (const std::exception&) { return 0; }

uint64_t uptier_stack_left(void) noexcept { return Runtime::stack_left(); }

uptier_status uptier_runtime_attach(uptier_runtime* runtime, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  Status s = runtime->runtime->attach();
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_detach(uptier_runtime* runtime) noexcept try {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  if (forked(*runtime)) return UPTIER_FORKED;
  if (uptier_status bad = check_change(*runtime, "detach", nullptr); bad != UPTIER_OK) return bad;
  runtime->runtime->detach();
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(nullptr); }

uptier_status uptier_stack_create(uptier_runtime* runtime, void* low, size_t bytes,
                                  uptier_stack** out, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  Result<NativeStack*> made = runtime->runtime->create_stack(low, bytes);
  if (!made) return fail(error, made.error());
  *out = reinterpret_cast<uptier_stack*>(*made);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_stack_switch(uptier_runtime* runtime, uptier_stack* to,
                                  uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  Status s = runtime->runtime->switch_stack(reinterpret_cast<NativeStack*>(to));
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_stack_destroy(uptier_runtime* runtime, uptier_stack* stack,
                                   uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  Status s = runtime->runtime->destroy_stack(reinterpret_cast<NativeStack*>(stack));
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_quiescent(uptier_runtime* runtime) noexcept try {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  if (forked(*runtime)) return UPTIER_FORKED;
  runtime->runtime->quiescent();
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(nullptr); }

uptier_status uptier_runtime_begin_blocked(uptier_runtime* runtime) noexcept try {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  if (forked(*runtime)) return UPTIER_FORKED;
  runtime->runtime->begin_blocked();
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(nullptr); }

uptier_status uptier_runtime_end_blocked(uptier_runtime* runtime) noexcept try {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  if (forked(*runtime)) return UPTIER_FORKED;
  runtime->runtime->end_blocked();
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(nullptr); }

uptier_status uptier_runtime_flush(uptier_runtime* runtime) noexcept try {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  if (forked(*runtime)) return UPTIER_FORKED;
  if (uptier_status bad = check_change(*runtime, "flush", nullptr); bad != UPTIER_OK) return bad;
  runtime->runtime->flush();
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(nullptr); }

}  // extern "C"
