// The runtime of the C API: its life, calls, threads.
#include "sampler/context.h"
#include "tiering/c_api.h"
#include "tiering/runtime_impl.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

uptier_outcome to_c_outcome(const Outcome& o) {
  return {o.bits, o.trap.detail, static_cast<uptier_trap>(o.trap.code), o.trap.location,
          to_c<uptier_method>(o.trap.method)};
}

// Whether the calling thread is attached to the runtime. Costs two loads.
bool is_attached(const uptier_runtime& r) {
  return sampler::current_context()->runtime == static_cast<RuntimeImpl*>(r.runtime.get());
}

uptier_status trapped(uptier_error* error, const CMethod& called, const Outcome& o) {
  if (error == nullptr) return UPTIER_TRAPPED;
  std::string text = called.name() + ": " + trap_text(o.trap.code);
  if (o.trap.method.valid()) text += " at location " + std::to_string(o.trap.location);
  return fail(error, UPTIER_TRAPPED, text);
}

}  // namespace

extern "C" {

uptier_status uptier_runtime_create(const uptier_options* options, const char* trace_path,
                                    uptier_runtime** out, uptier_error* error) noexcept {
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const Options o = options != nullptr ? options->options : Options();
  if (Status s = o.check(); !s) return fail(error, s.error());
  auto made = std::make_unique<uptier_runtime>(o);
  if (trace_path != nullptr) {
    Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(trace_path);
    if (!sink) return fail(error, sink.error());
    made->sink = std::move(*sink);
  }
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(o, made->sink.get());
  if (!runtime) return fail(error, runtime.error());
  made->runtime = std::move(*runtime);
  *out = made.release();
  return UPTIER_OK;
}

void uptier_runtime_destroy(uptier_runtime* runtime) noexcept {
  if (runtime == nullptr) return;
  runtime->runtime.reset();  // nobody calls a host from here on
  runtime->methods.drop_all();
  delete runtime;
}

uptier_status uptier_runtime_invoke(uptier_runtime* runtime, uptier_method method,
                                    const uint64_t* args, size_t count, uptier_outcome* out,
                                    uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  if (count != m->signature().params.size()) {
    return bad_argument(error, "a wrong number of arguments");
  }
  if (args == nullptr && count != 0) return bad_argument(error, "the arguments are NULL");
  if (!is_attached(*runtime)) {
    // Here, not in Runtime::invoke, so that memory that is refused is told from a trap.
    ThreadScope attached(*runtime->runtime);
    if (!attached.status()) return fail(error, attached.status().error());
    return uptier_runtime_invoke(runtime, method, args, count, out, error);
  }
  Outcome o = runtime->runtime->invoke(m->id, std::span(args, count));
  if (out != nullptr) *out = to_c_outcome(o);
  return o.ok() ? UPTIER_OK : trapped(error, *m, o);
}

uptier_status uptier_runtime_loop_countdown(uptier_runtime* runtime, uptier_method method,
                                            int32_t** out, uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  if (!is_attached(*runtime)) return bad_argument(error, "the thread is not attached");
  *out = runtime->runtime->loop_countdown(m->id);
  return UPTIER_OK;
}

uptier_status uptier_runtime_osr_enter(uptier_runtime* runtime, uptier_method method,
                                       uptier_loop loop, const uint64_t* args, size_t count,
                                       const uint64_t* frame, int* entered, uptier_outcome* out,
                                       uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (entered == nullptr || frame == nullptr) {
    return bad_argument(error, "entered or frame is NULL");
  }
  *entered = 0;
  const CMethod* m = runtime->methods.find(method);
  if (m == nullptr) return bad_argument(error, "the method is not in service");
  if (count != m->signature().params.size()) {
    return bad_argument(error, "a wrong number of arguments");
  }
  if (args == nullptr && count != 0) return bad_argument(error, "the arguments are NULL");
  if (!is_attached(*runtime)) return bad_argument(error, "the thread is not attached");
  LoopId id = from_c<LoopId>(loop);
  if (!id.valid()) return bad_argument(error, "the loop is none");
  std::optional<Outcome> o = runtime->runtime->osr_enter(m->id, id, std::span(args, count), frame);
  if (!o) return UPTIER_OK;
  *entered = 1;
  if (out != nullptr) *out = to_c_outcome(*o);
  return o->ok() ? UPTIER_OK : trapped(error, *m, *o);
}

uptier_status uptier_raise(uptier_trap code, uint64_t detail) noexcept {
  if (code == UPTIER_TRAP_NONE || code >= UPTIER_TRAP_COUNT) return UPTIER_INVALID_ARGUMENT;
  // Without an invoke nobody would take the trap, until an unrelated call does.
  if (sampler::current_context()->activation == nullptr) return UPTIER_INVALID_ARGUMENT;
  Runtime::raise(static_cast<TrapCode>(code), detail);
  return UPTIER_OK;
}

uptier_status uptier_runtime_attach(uptier_runtime* runtime, uptier_error* error) noexcept {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  Status s = runtime->runtime->attach();
  return s ? UPTIER_OK : fail(error, s.error());
}

uptier_status uptier_runtime_detach(uptier_runtime* runtime) noexcept {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  runtime->runtime->detach();
  return UPTIER_OK;
}

uptier_status uptier_runtime_quiescent(uptier_runtime* runtime) noexcept {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  runtime->runtime->quiescent();
  return UPTIER_OK;
}

uptier_status uptier_runtime_flush(uptier_runtime* runtime) noexcept {
  if (runtime == nullptr) return UPTIER_INVALID_ARGUMENT;
  runtime->runtime->flush();
  return UPTIER_OK;
}

}  // extern "C"
