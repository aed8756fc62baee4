#include "embed/wasm/engine.h"

#include <utility>

#include "embed/wasm/build_adapter.h"
#include "embed/wasm/build_function.h"
#include "embed/wasm/hash.h"

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
      std::lock_guard lock(mutex_);
      auto it = types_.find(m.index());
      if (it == types_.end()) return Error{ErrorCode::kInvalidArgument, "not an adapter"};
      type = it->second;
    }
    build_adapter(type, b);
    return {};
  }

  void add(MethodId m, const FuncType& type) {
    std::lock_guard lock(mutex_);
    types_[m.index()] = type;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint32_t, FuncType> types_;
};

Result<std::unique_ptr<Engine>> Engine::create(const Options& options,
                                               const EngineOptions& engine_options,
                                               TraceSink* sink) {
  Options hardened = options;
  hardened.blind_constants |= engine_options.blind_constants;
  auto runtime = Runtime::create(hardened, sink);
  if (!runtime) return runtime.error();
  auto engine = std::make_unique<Engine>(**runtime, engine_options);
  engine->owned_runtime_ = std::move(*runtime);
  return engine;
}

Engine::Engine(Runtime& runtime, const EngineOptions& options)
    : runtime_(&runtime), options_(options), adapter_host_(std::make_unique<AdapterHost>()) {}

Engine::~Engine() {
  std::vector<MethodId> methods;
  for (const auto& [type, method] : adapters_) methods.push_back(method);
  runtime_->remove_methods(methods);
  owned_runtime_.reset();  // its worker may still ask the adapter host
}

uint32_t Engine::type_id(const FuncType& type) {
  std::lock_guard lock(mutex_);
  auto next = static_cast<uint32_t>(type_ids_.size() + 1);
  return type_ids_.try_emplace(type, next).first->second;
}

Result<MethodId> Engine::adapter(const FuncType& type) {
  std::lock_guard lock(mutex_);
  auto it = adapters_.find(type);
  if (it != adapters_.end()) return it->second;
  std::string text = to_string(type);
  MethodInfo info{
      {kAdapterModule, adapter_key(text)}, "host " + text, compiled_signature(type), nullptr};
  Result<MethodId> id = runtime_->add_method(*adapter_host_, std::move(info));
  if (!id) return id.error();
  adapter_host_->add(*id, type);
  adapters_[type] = *id;
  return *id;
}

void Engine::name_methods(const Module& module, std::span<const MethodId> methods) {
  std::lock_guard lock(mutex_);
  uint32_t function = module.info().imported_functions;
  for (MethodId m : methods) origins_[m.number()] = {&module, function++};
}

void Engine::forget_methods(std::span<const MethodId> methods) {
  std::lock_guard lock(mutex_);
  for (MethodId m : methods) origins_.erase(m.number());
}

namespace {

// Returns ": " and why a method has no code, if that is known.
std::string why_no_code(const Runtime& runtime, MethodId method) {
  for (const MethodReport& m : runtime.report().methods) {
    if (m.method == method && !m.last_error.empty()) return ": " + m.last_error;
  }
  return "";
}

}  // namespace

TrapReport Engine::describe(const Trap& trap) const {
  TrapReport r;
  r.code = trap.code;
  if (!r.trapped()) return r;
  r.message = trap_text(trap.code);
  r.detail = trap.detail;
  if (!trap.method.valid()) return r;
  if (trap.code == TrapCode::kNoCode) r.message += why_no_code(*runtime_, trap.method);
  std::lock_guard lock(mutex_);
  auto it = origins_.find(trap.method.number());
  if (it == origins_.end()) return r;
  r.has_location = true;
  r.function = it->second.function;
  r.function_name = it->second.module->info().functions[r.function].name;
  r.offset = trap.location;
  return r;
}

std::string TrapReport::text() const {
  std::string s = message;
  if (code == TrapCode::kExit) s += " with code " + std::to_string(detail);
  if (!has_location) return s;
  if (offset != 0) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (uint32_t v = offset; v != 0; v >>= 4) hex.insert(hex.begin(), kDigits[v & 15]);
    s += " at 0x" + hex;
  }
  s += " in func[" + std::to_string(function) + "]";
  // Without a name of its own a function is called func[N] already.
  if (!function_name.starts_with("func[")) s += " <" + function_name + ">";
  return s;
}

}  // namespace uptier::wasm
