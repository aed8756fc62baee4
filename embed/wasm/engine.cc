#include "embed/wasm/engine.h"

#include <utility>

#include "embed/wasm/build_adapter.h"
#include "embed/wasm/build_function.h"
#include "embed/wasm/hash.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {
namespace {

// The key of adapters in profiles and traces; they belong to no module.
constexpr uint64_t kAdapterModule = 0x686f73742d66756e;  // "host-fun"

uint32_t adapter_key(const std::string& type) {
  return static_cast<uint32_t>(
      hash_bytes({reinterpret_cast<const uint8_t*>(type.data()), type.size()}));
}

}  // namespace

// Describes adapters. The types are added before their methods can be called, under a lock of its
// own: the runtime may build one while another is added.
class Engine::AdapterHost final : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    FuncType type;
    {
      const Held lock(mutex_);
      auto it = types_.find(m.index());
      if (it == types_.end()) return Error{ErrorCode::kInvalidArgument, "not an adapter"};
      type = it->second;
    }
    build_adapter(type, b);
    return {};
  }

  void add(MethodId m, const FuncType& type) {
    const Held lock(mutex_);
    types_[m.index()] = type;
  }

 private:
  CheckedLock<std::mutex> mutex_;
  std::unordered_map<uint32_t, FuncType> types_ UPTIER_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<Engine>> Engine::create(const Options& options,
                                               const EngineOptions& engine_options,
                                               TraceSink* sink) try {
  Options hardened = options;
  hardened.blind_constants |= engine_options.blind_constants;
  auto runtime = Runtime::create(hardened, sink);
  if (!runtime) return runtime.error();
  auto engine = std::make_unique<Engine>(**runtime, engine_options);
  engine->owned_runtime_ = std::move(*runtime);
  return engine;
} catch (const std::exception&) { return out_of_memory(); }

Engine::Engine(Runtime& runtime, const EngineOptions& options)
    : runtime_(&runtime), options_(options), adapter_host_(std::make_unique<AdapterHost>()) {}

Engine::~Engine() {
  for (const auto& [type, method] : adapters_) runtime_->remove_methods(std::span(&method, 1));
  owned_runtime_.reset();  // its worker may still ask the adapter host
}

uint32_t Engine::type_id(const FuncType& type) {
  const Held lock(mutex_);
  auto next = static_cast<uint32_t>(type_ids_.size() + 1);
  return type_ids_.try_emplace(type, next).first->second;
}

Result<MethodId> Engine::adapter(const FuncType& type) try {
  const Held lock(mutex_);
  auto it = adapters_.find(type);
  if (it != adapters_.end()) return it->second;
  std::string text = to_string(type);
  MethodInfo info{
      {kAdapterModule, adapter_key(text)}, "host " + text, compiled_signature(type), nullptr};
  auto place = adapters_.emplace(type, MethodId::none()).first;
  Result<MethodId> id = runtime_->add_method(*adapter_host_, std::move(info));
  if (!id || !finishes([&] { adapter_host_->add(*id, type); })) {
    adapters_.erase(place);
    if (!id) return id.error();
    runtime_->remove_methods(std::span(&*id, 1));
    return out_of_memory();
  }
  place->second = *id;
  return *id;
} catch (const std::exception&) { return out_of_memory(); }

void Engine::name_method(const Module& module, MethodId method, uint32_t function) {
  const Held lock(mutex_);
  origins_[method.number()] = {&module, function};
}

void Engine::forget_methods(std::span<const MethodId> methods) {
  const Held lock(mutex_);
  for (MethodId m : methods) origins_.erase(m.number());
}

namespace {

constexpr size_t kTrapFrames = 64;

// Returns whether a method without code has none because memory for it was refused. Then there may have been
// none for saying so, either.
bool says_no_memory(const std::string& why) {
  return why.empty() || why.ends_with("memory is refused") || why.ends_with("out of memory");
}

}  // namespace

// The facts of the report need no memory; its text may be incomplete without.
TrapReport Engine::describe(const Trap& trap) const {
  TrapReport r;
  r.code = trap.code;
  r.detail = trap.detail;
  r.no_memory = trap.code == TrapCode::kNoCode;
  if (r.trapped()) finishes([&] { describe_in_words(trap, r); });
  return r;
}

void Engine::describe_in_words(const Trap& trap, TrapReport& r) const {
  r.message = trap_text(trap.code);
  r.no_memory = false;
  if (!trap.method.valid()) return;
  if (trap.code == TrapCode::kNoCode) {
    const std::string why = runtime_->error_of(trap.method);
    r.no_memory = says_no_memory(why);
    if (!why.empty()) r.message += ": " + why;
  }
  const Held lock(mutex_);
  auto it = origins_.find(trap.method.number());
  if (it == origins_.end()) return;
  r.has_location = true;
  r.function = it->second.function;
  r.function_name = it->second.module->info().name_of(r.function);
  r.offset = trap.location;
  CallSite sites[kTrapFrames];
  const size_t count = runtime_->trap_stack(sites);
  for (const CallSite& site : std::span(sites).first(count)) {
    const auto origin = origins_.find(site.method.number());
    if (origin == origins_.end()) continue;
    const uint32_t function = origin->second.function;
    r.stack.push_back({function, origin->second.module->info().name_of(function), site.location});
  }
}

}  // namespace uptier::wasm
