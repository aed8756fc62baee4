#include "tools/interpreter_runtime.h"

#include <algorithm>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "sampler/context.h"

namespace uptier::tools {
namespace {

void add(std::vector<uint64_t>& to, std::span<const uint64_t> from) {
  to.resize(std::max(to.size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

// All helpers of the WebAssembly engine take integers and pointers, at most five.
jit::OutsideResult call_host(const jit::HostCallee& callee, std::span<const uint64_t> args) {
  uint64_t a[6] = {};
  std::copy_n(args.begin(), std::min<size_t>(args.size(), 6), a);
  using Helper = uint64_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
  auto* helper = reinterpret_cast<Helper*>(const_cast<void*>(callee.address));
  // Acts like an invoke: a trap that is raised with no activation below would be dropped.
  sampler::ThreadContext& context = *sampler::current_context();
  sampler::Activation here{context.activation, 0};
  context.activation = &here;
  uint64_t bits = helper(a[0], a[1], a[2], a[3], a[4], a[5]);
  context.activation = here.outer;
  auto trap = static_cast<TrapCode>(context.pending_trap);
  context.pending_trap = 0;
  return {bits, trap};
}

}  // namespace

InterpreterRuntime::InterpreterRuntime() {
  auto r = Runtime::create({});
  if (!r.ok()) {
    note(r.error().message);
    return;
  }
  behind_ = std::move(*r);
  scope_ = std::make_unique<ThreadScope>(*behind_);
}

InterpreterRuntime::~InterpreterRuntime() { scope_.reset(); }

void InterpreterRuntime::note(const std::string& problem) {
  if (problem_.empty()) problem_ = problem;
}

Result<MethodId> InterpreterRuntime::add_method(Host& host, MethodInfo info) {
  methods_.push_back({&host, std::move(info)});
  return MethodId(static_cast<uint32_t>(methods_.size() - 1));
}

const void* InterpreterRuntime::entry_address(MethodId m) const {
  return reinterpret_cast<const void*>(jit::Interpreter::address_of(m));
}

Outcome InterpreterRuntime::invoke(MethodId m, std::span<const uint64_t> args) {
  describe();
  jit::InterpretOptions options;
  options.step_limit = uint64_t{1} << 40;
  options.depth_limit = 3000;
  options.memory = {{4096, (uint64_t{1} << 47) - 4096, true}};
  options.call_host = call_host;
  options.observer = observer;
  jit::Interpreter interpreter(module_, options);
  jit::InterpretOutcome r = interpreter.run(m, args);
  add_counts(interpreter);
  if (r.kind == jit::InterpretOutcome::Kind::kReturned) return {r.bits, {}};
  if (r.kind == jit::InterpretOutcome::Kind::kStopped) note(r.why);
  uint64_t detail = sampler::current_context()->trap_detail;
  return {0, {r.trap, r.method, r.location, detail}};
}

// Resizes: nested calls may have added methods.
void InterpreterRuntime::add_counts(const jit::Interpreter& interpreter) {
  counts_.resize(methods_.size());
  for (uint32_t m = 0; m < interpreter.methods(); ++m) {
    auto sites = interpreter.site_counts(MethodId(m));
    size_t blocks = std::min<size_t>(sites.size(), module_.functions[m].block_sites);
    add(counts_[m].blocks, sites.first(blocks));
    add(counts_[m].edges, interpreter.edge_counts(MethodId(m)));
  }
}

jit::Function InterpreterRuntime::body_of(uint32_t m) {
  if (m < instead.size() && instead[m]) return *instead[m];
  FunctionBuilder b(methods_[m].info.signature, methods_[m].info.name);
  if (Status s = methods_[m].host->build(MethodId(m), b); !s.ok()) note(s.error().message);
  jit::Function f = BuilderAccess::finish(b);
  if (Status s = jit::verify(f); !s.ok()) note(s.error().message);
  return f;
}

void InterpreterRuntime::describe() {
  for (size_t m = module_.functions.size(); m < methods_.size(); ++m) {
    module_.functions.push_back(body_of(static_cast<uint32_t>(m)));
  }
}

}  // namespace uptier::tools
