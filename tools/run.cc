// uptier run: a WebAssembly program under WASI, through all tiers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

#include "embed/wasi/bind.h"
#include "embed/wasi/wasi.h"
#include "embed/wasm/engine.h"
#include "embed/wasm/memory.h"
#include "embed/wasm/read_module.h"
#include "tools/commands.h"
#include "tools/events.h"
#include "tools/fail.h"
#include "tools/leave.h"
#include "tools/pseudo_probe.h"
#include "tools/run_lines.h"
#include "tools/runtime_stream.h"
#include "tools/save_on_signal.h"
#include "tools/time_limit.h"
#include "tools/values.h"

namespace uptier::tools {
namespace {

wasm::WasiConfig wasi_config(const RunCommand& c) {
  wasm::WasiConfig config;
  config.args.push_back(c.module);
  config.args.insert(config.args.end(), c.args.begin(), c.args.end());
  for (const std::string& e : c.env) {
    if (e.find('=') != std::string::npos) {
      config.env.push_back(e);
    } else if (const char* value = std::getenv(e.c_str())) {
      config.env.push_back(e + "=" + value);
    }
  }
  for (const std::string& d : c.dirs) {
    size_t colons = d.find("::");
    std::string host = d.substr(0, colons);
    config.preopens.push_back({host, colons == std::string::npos ? host : d.substr(colons + 2)});
  }
  return config;
}

int trapped(const RunCommand& c, const wasm::ModuleBytes& bytes, const wasm::TrapReport& trap) {
  // The program's output comes before the message.
  std::fflush(stdout);
  if (trap.no_memory) return fail_without_memory();
  if (trap.code == TrapCode::kInterrupted) return timed_out(c.timeout);
  return fail(kTrapped, "trap: " + trap.text() + trap_lines(c.module, bytes, trap));
}

// A build that looks for leaks takes everything apart.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLooksForLeaks = true;
#else
constexpr bool kLooksForLeaks = false;
#endif

constexpr const char* kInitialize = "_initialize";

// A call that did not return: by the guest's exit, or by a trap.
int ended(const RunCommand& c, const wasm::ModuleBytes& bytes, const wasm::TrapReport& trap) {
  if (trap.code == TrapCode::kExit) return static_cast<int>(trap.detail & 0xff);
  return trapped(c, bytes, trap);
}

// A program that does not import args_get cannot read its arguments.
bool reads_arguments(const wasm::ModuleInfo& module) {
  for (const wasm::Import& i : module.imports) {
    if (i.kind == wasm::ExternKind::kFunction && i.name == "args_get") return true;
  }
  return false;
}

// An option of the tool after the module is an argument of the program. Warn about it if it must be a
// mistake: the program reads no arguments.
void tell_of_misplaced(const wasm::ModuleInfo& module, const RunCommand& c) {
  if (c.misplaced.empty() || !c.invoke.empty() || reads_arguments(module)) return;
  fail(kOk, c.misplaced + " stands after " + c.module +
                ", so it was passed to the program, which reads no arguments; usage: " + kRunUsage);
}

// The same of a program that reads its arguments, and has failed.
void tell_of_refused(const wasm::ModuleInfo& module, const RunCommand& c) {
  if (c.misplaced.empty() || !c.invoke.empty() || !reads_arguments(module)) return;
  fail(kOk, c.misplaced + " stands after " + c.module +
                ", so it was passed to the program; usage: " + kRunUsage);
}

// The same of an argument of a function: a number is no option.
std::string misplaced_hint(const RunCommand& c) {
  if (c.misplaced.empty()) return "";
  return "; write options of uptier before the module: " + std::string(kRunUsage);
}

int call_function(wasm::Instance& instance, const wasm::ModuleBytes& bytes, const RunCommand& c) {
  wasm::Extern found = instance.find_export(c.invoke);
  auto* f = std::get_if<wasm::FuncRef>(&found);
  if (f == nullptr) return fail(kFailed, "the module exports no function \"" + c.invoke + "\"");
  const std::vector<Type>& params = f->type->params;
  if (params.size() != c.args.size()) {
    return fail(kUsage, c.invoke + " takes " + std::to_string(params.size()) + " arguments, " +
                            std::to_string(c.args.size()) + " given" + misplaced_hint(c));
  }
  std::vector<wasm::Val> args;
  for (size_t i = 0; i < params.size(); ++i) {
    std::optional<uint64_t> bits = parse_value(params[i], c.args[i]);
    if (!bits) {
      return fail(kUsage, "argument " + std::to_string(i + 1) + ": \"" + c.args[i] +
                              "\" is not a number of type " + type_name(params[i]) +
                              misplaced_hint(c));
    }
    args.push_back({params[i], *bits});
  }
  // A library of WASI's has a start of its own, which comes before everything else.
  wasm::Extern init = instance.find_export(kInitialize);
  if (std::get_if<wasm::FuncRef>(&init) != nullptr && c.invoke != kInitialize) {
    Result<wasm::CallResult> r = instance.invoke(kInitialize);
    if (!r) return fail(kFailed, r.error().message);
    if (!r->ok()) return ended(c, bytes, r->trap);
  }
  Result<wasm::CallResult> r = instance.invoke(c.invoke, args);
  if (!r) return fail(kFailed, r.error().message);
  if (!r->ok()) return ended(c, bytes, r->trap);
  for (const wasm::Val& v : r->results) std::printf("%s\n", print_value(v.type, v.bits).c_str());
  return kOk;
}

// Prints why a saved profile was not used, or not completely. Returns the exit code for a program that
// ended with 0.
int tell_of_profile(Runtime& runtime, const Options& options, const Status& saved) {
  if (options.profile.empty()) return kOk;
  SavedReport r = runtime.saved_report();
  if (!r.problem.empty()) fail(kOk, r.problem);
  if (r.stale != 0) {
    fail(kOk,
         r.file + ": " + std::to_string(r.stale) +
             " methods have other code than when they were profiled: their profiles were dropped");
  }
  if (r.matched != 0) {
    fail(kOk, r.file + ": " + std::to_string(r.matched) +
                  " methods have other code than when they were profiled: their profiles were "
                  "matched by their calls");
  }
  return saved ? int{kOk} : fail(kFailed, saved.error().message);
}

// Hands events on, and keeps what went wrong first: the runtime counts it, and goes on.
class WatchedSink final : public TraceSink {
 public:
  WatchedSink(std::string path, std::unique_ptr<TraceSink> to)
      : path_(std::move(path)), to_(std::move(to)) {}

  Status on_event(const TraceEvent& event) override {
    Status taken = to_->on_event(event);
    if (!taken && first_) first_ = taken;
    return taken;
  }
  // tell() reports the losses.
  Status finish(uint64_t lost) override {
    Status ended = to_->finish(lost);
    if (!ended && first_) first_ = ended;
    lost_ = lost;
    return {};
  }

  // Called after the runtime has ended: prints what is missing. Returns the exit code of a program that ended
  // with 0.
  int tell() const {
    if (first_) return kOk;
    return fail(kFailed, path_ + ": the trace is incomplete, " + std::to_string(lost_) +
                             " events are lost: " + first_.error().message);
  }

 private:
  std::string path_;
  std::unique_ptr<TraceSink> to_;
  uint64_t lost_ = 0;
  Status first_;
};

// Names the import, since a trap that a host function raises has no place of its own.
void call_unknown(void* env, wasm::Instance&, const uint64_t*, uint64_t*) noexcept {
  std::fflush(stdout);
  fail(kOk, "call of an unknown import: " + *static_cast<std::string*>(env));
  Runtime::raise(TrapCode::kHost);
}

// Defines what `module` imports and `linker` lacks. `names` must outlive the store.
void define_unknown(const wasm::ModuleInfo& module, wasm::Linker& linker,
                    std::deque<std::string>& names) {
  for (const wasm::Import& i : module.imports) {
    if (i.kind != wasm::ExternKind::kFunction || linker.find(i.module, i.name) != nullptr) continue;
    names.push_back("\"" + i.module + "\".\"" + i.name + "\"");
    linker.define({i.module, i.name, module.type_of(i.index), call_unknown, &names.back()});
  }
}

// A module that needs more methods than a runtime has by default gets them; who has asked for a
// number gets that.
Options options_for(const wasm::ModuleInfo& module, const RunCommand& c) {
  Options options = c.options;
  if (c.fuel != 0) options.fuel = c.fuel;
  if (options.max_methods != Options{}.max_methods) return options;
  options.max_methods = std::max<uint64_t>(options.max_methods, module.functions.size());
  return options;
}

wasm::Bounds bounds_of(const wasm::ModuleInfo& module, const wasm::EngineOptions& options) {
  const auto wanted = options.explicit_bounds ? wasm::Bounds::kExplicit : wasm::Bounds::kGuarded;
  return module.memory ? wasm::bounds_of(*module.memory, options.max_pages, wanted) : wanted;
}

// Code that checks bounds has its own module key, so its counts are not added to those of other runs.
void tell_of_bounds(const RunCommand& c, wasm::Bounds wanted, const wasm::Instance& instance) {
  const bool observed = !c.options.profile.empty() || !c.trace.empty();
  const wasm::Memory* memory = instance.memory();
  if (!observed || memory == nullptr || memory->bounds() == wanted) return;
  fail(kOk,
       "the system refused the address space of a guarded memory: bounds are checked in code, and "
       "counts are kept apart from those of runs with a guarded memory");
}

int start(wasm::Instance& instance, const wasm::ModuleBytes& bytes, const RunCommand& c) {
  if (!c.invoke.empty()) return call_function(instance, bytes, c);
  wasm::Extern main = instance.find_export("_start");
  if (std::get_if<wasm::FuncRef>(&main) == nullptr) {
    return fail(kRefused, c.module + ": exports no function \"_start\", so it is not a command; " +
                              "use --invoke to call another function of it");
  }
  wasm::CommandResult r = wasm::run_start(instance);
  if (r.exit_code) return static_cast<int>(*r.exit_code & 0xff);
  return trapped(c, bytes, r.trap);
}

// Bytes up to which bodies are validated while the worker makes what a saved profile knows. Larger
// modules have several threads validate them first.
constexpr size_t kSmallModule = 256 << 10;

wasm::Bodies bodies_of(const RunCommand& c, const wasm::ModuleBytes& bytes) {
  const bool meanwhile = !c.options.profile.empty() && bytes.size() <= kSmallModule;
  return c.lazy_validation || meanwhile || !c.options.image.empty() ? wasm::Bodies::kLater
                                                                    : wasm::Bodies::kValidated;
}

// Whether the bodies were validated when the image was made. Says so if the image is of something else.
bool is_imaged(const RunCommand& c, Runtime& runtime, wasm::Module& module, wasm::Bounds bounds) {
  if (c.options.image.empty() || !runtime.image_report().problem.empty()) return false;
  if (runtime.image_has(module.content(bounds))) return true;
  fail(kOk, "the image is not used: " + c.options.image + ": it is not of " + c.module +
                " as this command runs it");
  return false;
}

// Writes the image of the code that ran. Returns the exit code of a program that ended with 0.
int write_image(const RunCommand& c, Runtime& runtime) {
  if (c.image_out.empty()) return kOk;
  Result<ImageMade> made = runtime.write_image(c.image_out, {});
  return made ? int{kOk} : fail(kFailed, made.error().message);
}

// `sink` may be null; it gets the last events when this returns.
int run_traced(const RunCommand& c, wasm::ModuleBytes bytes, TraceSink* sink) {
  std::optional<HeldSignals> held;
  if (!c.options.profile.empty()) held.emplace();
  wasm::EngineOptions engine_options;
  engine_options.explicit_bounds = c.explicit_bounds;
  engine_options.blind_constants = false;  // as the options say, see RuntimeWords
  engine_options.max_memory = c.max_memory;
  engine_options.cover = !c.coverage.empty() && c.options.tier != TierMode::kInstrumented;
  const wasm::Bodies bodies = bodies_of(c, bytes);
  Result<wasm::ModuleInfo> info = wasm::read_module(std::move(bytes), bodies);
  if (!info) return fail(kRefused, c.module + ": " + info.error().message);
  auto engine = wasm::Engine::create(options_for(*info, c), engine_options, sink);
  if (!engine) return fail(kFailed, engine.error().message);
  std::unique_ptr<wasm::Module> module = wasm::Module::make(**engine, std::move(*info));
  tell_of_misplaced(module->info(), c);
  for (const std::string& place : c.log_at) {
    if (Status s = module->log_at(place); !s) return fail(kUsage, s.error().message);
  }
  auto wasi = wasm::Wasi::create(wasi_config(c));
  if (!wasi) return fail(kFailed, wasi.error().message);

  Runtime& runtime = (*engine)->runtime();
  std::optional<RuntimeStream> stream(std::in_place, runtime);
  // The worker starts to compile the methods that a profile knows when the thread attaches, and a report
  // lists methods that were never called. If there is no room for all, instantiation fails.
  if (!c.options.profile.empty() || !c.shown.report.empty()) {
    (void)module->methods(bounds_of(module->info(), engine_options));
  }
  if (c.shown.loops == kEachLoop) runtime.keep_loop_executions(kEachLoopMost);
  std::optional<TimeLimit> time_limit(std::in_place, runtime, c.timeout);
  ThreadScope attached(runtime);
  if (!attached.status()) return fail(kFailed, attached.status().error().message);
  const bool imaged = is_imaged(c, runtime, *module, bounds_of(module->info(), engine_options));
  if (bodies == wasm::Bodies::kLater && !c.lazy_validation && !imaged) {
    // Nothing has run, so there is nothing to be saved.
    Status valid = module->validate_bodies();
    if (!valid) leave(fail(kRefused, c.module + ": " + valid.error().message));
  }
  std::optional<SaveOnSignal> saves;
  if (held) saves.emplace(runtime);
  wasm::Linker linker;
  wasm::bind_wasi(linker, **wasi);
  std::deque<std::string> unknown;
  if (c.trap_unknown) define_unknown(module->info(), linker, unknown);
  wasm::Store store(**engine);
  wasm::Instantiation made = store.instantiate(*module, linker);
  int code = kOk;
  if (made.ok()) {
    tell_of_bounds(c, bounds_of(module->info(), engine_options), *made.instance);
    code = start(*made.instance, module->info().bytes, c);
    if (code != kOk) tell_of_refused(module->info(), c);
  } else if (made.error) {
    code = fail(kRefused, c.module + ": " + made.error->message);
  } else {
    code = trapped(c, module->info().bytes, made.trap);
  }
  time_limit.reset();
  saves.reset();
  // The program's exit code stays its own.
  try {
    Status saved = runtime.save_profile();
    Shown what = c.shown;
    what.log |= !c.log_at.empty() && c.options.profile.empty();  // else the profile has the lines
    const int shown = show(runtime, what);
    const int covered = c.coverage.empty()
                            ? kOk
                            : write_coverage(runtime, c.module, *module, c.coverage,
                                             c.options.tier == TierMode::kInstrumented);
    const int written = write_image(c, runtime);
    const int kept = tell_of_profile(runtime, c.options, saved);
    stream.reset();
    const int told = finish_events();
    const int probed = c.probes.empty() ? kOk : write_pseudo_probes(runtime, c.probes);
    for (const int failed : {shown, covered, written, kept, told, probed}) {
      if (code == kOk) code = failed;
    }
  } catch (const std::bad_alloc&) {
    fail_without_memory();
    if (code == kOk) code = kFailed;
  }
  // Traces and dumps get their last records, or say what they lack, when their runtime goes.
  // The socket of a runtime goes with it, too.
  const bool all_written =
      c.trace.empty() && c.options.listen.empty() && !c.options.jit_dump && !c.options.perf_map;
  if (all_written && !kLooksForLeaks) leave(code);
  return code;
}

}  // namespace

int run(const RunCommand& c) {
  if (c.lazy_validation && !c.image_out.empty()) {
    return fail(kUsage,
                "--image-out: an image vouches for valid bodies; leave out --lazy-validation");
  }
  if (int code = start_events(c.events); code != kOk) return code;
  if (!c.probes.empty() && make_probe_folder(c.probes) != kOk) return kFailed;
  // Read once, not mapped: exactly the validated bytes are compiled, even if the file changes.
  Result<std::vector<uint8_t>> read = read_file(c.module);
  if (!read) return fail(kRefused, read.error().message);
  wasm::ModuleBytes bytes(std::move(*read));
  if (!c.coverage.empty()) {
    const Status can = check_coverage(c.module, bytes);
    if (!can) return fail(kRefused, can.error().message);
  }
  if (c.trace.empty()) return run_traced(c, std::move(bytes), nullptr);
  Result<std::unique_ptr<TraceSink>> opened = trace_file_sink(c.trace);
  if (!opened) return fail(kFailed, opened.error().message);
  WatchedSink sink(c.trace, std::move(*opened));
  const int code = run_traced(c, std::move(bytes), &sink);
  const int traced = sink.tell();
  return code == kOk ? traced : code;
}

}  // namespace uptier::tools
