#include "embed/wasm/instance.h"

#include <algorithm>
#include <cstring>

#include "embed/wasm/engine.h"
#include "embed/wasm/instantiate.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {

// ---- Instance -------------------------------------------------------------------------------

Instance::Instance(Store& store, Module& module)
    : store_(store),
      module_(module),
      words_(new Word32[module.layout().size / sizeof(Word32)]()),
      results_(module.max_results()),
      data_dropped_(module.info().data.size()),
      elem_dropped_(module.info().elems.size()) {
  context()->header.results = results_.data();
  context()->instance = this;
}

Instance::~Instance() = default;

Extern Instance::find_export(std::string_view name) {
  const Export* e = module_.find_export(name);
  if (e == nullptr) return {};
  switch (e->kind) {
    case ExternKind::kFunction: return function(e->index);
    case ExternKind::kTable: return table_;
    case ExternKind::kMemory: return memory_;
    case ExternKind::kGlobal: return global(e->index);
  }
  return {};
}

FuncRef Instance::function(uint32_t index) const {
  const ModuleInfo& info = module_.info();
  auto* bytes = reinterpret_cast<std::byte*>(words_.get());
  if (index < info.imported_functions) {
    return *reinterpret_cast<FuncRef*>(bytes + module_.layout().import(index));
  }
  Result<MethodId> m = module_.method(bounds_, index);
  if (!m) return {};
  return {store_.engine().runtime().entry_address(*m), bytes,
          module_.type_id(info.functions[index].type), m->number(), &info.type_of(index)};
}

Global Instance::global(uint32_t index) const {
  auto* cell = reinterpret_cast<uint64_t*>(reinterpret_cast<std::byte*>(words_.get()) +
                                           module_.layout().global(index));
  bool is_imported = index < module_.info().imported_globals;
  if (is_imported) cell = reinterpret_cast<uint64_t*>(*cell);
  return {module_.info().globals[index].type, cell};
}

Result<CallResult> Instance::invoke(std::string_view name, std::span<const Val> args) {
  const Export* e = module_.find_export(name);
  if (e == nullptr || e->kind != ExternKind::kFunction) {
    return Error{ErrorCode::kNotFound, "no exported function \"" + std::string(name) + "\""};
  }
  return store_.call(function(e->index), args);
}

bool Instance::memory_init(uint32_t segment, uint64_t to, uint64_t from, uint64_t count) noexcept {
  std::span<const uint8_t> bytes;
  if (!data_dropped_[segment]) bytes = module_.info().data[segment].bytes;
  if (from > bytes.size() || count > bytes.size() - from || !memory_->contains(to, count)) {
    return false;
  }
  if (count != 0) std::memcpy(memory_->bytes().data() + to, bytes.data() + from, count);
  return true;
}

bool Instance::table_init(uint32_t segment, uint64_t to, uint64_t from, uint64_t count) noexcept {
  std::span<const uint32_t> functions;
  if (!elem_dropped_[segment]) functions = module_.info().elems[segment].functions;
  if (from > functions.size() || count > functions.size() - from || !table_->contains(to, count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t f = functions[from + i];
    table_->entries()[to + i] = f == ElemSegment::kNullFunction ? FuncRef{} : function(f);
  }
  return true;
}

// ---- Store ----------------------------------------------------------------------------------

Store::Store(Engine& engine) : engine_(engine) {}
Store::~Store() = default;

Instantiation Store::instantiate(Module& module, const Linker& linker) {
  return wasm::instantiate(*this, module, linker);
}

Result<Memory*> Store::create_memory(const Limits& limits) {
  const EngineOptions& o = engine_.options();
  auto m =
      Memory::create(limits, o.max_pages, o.explicit_bounds ? Bounds::kExplicit : Bounds::kGuarded,
                     &engine_.memory_budget());
  if (!m) return m.error();
  memories_.push_back(std::move(*m));
  return memories_.back().get();
}

Result<Table*> Store::create_table(const Limits& limits) {
  auto t = Table::create(limits, engine_.options().max_table_entries);
  if (!t) return t.error();
  tables_.push_back(std::move(*t));
  return tables_.back().get();
}

Global Store::create_global(GlobalType type, uint64_t bits) {
  global_cells_.push_back(bits);
  return {type, &global_cells_.back()};
}

Result<FuncRef> Store::bind_host(const HostImport& function, Instance& caller) {
  Result<MethodId> adapter = engine_.adapter(function.type);
  if (!adapter) return adapter.error();
  auto binding = std::make_unique<HostBinding>();
  HostBinding& b = *binding;
  b.type = function.type;
  b.words.resize(std::max(b.type.params.size(), b.type.results.size()) + 1);
  b.context = {{b.words.data() + 1},
               b.words.data(),
               function.callback,
               function.env,
               &caller,
               static_cast<uint32_t>(b.type.params.size()),
               static_cast<uint32_t>(b.type.results.size())};
  bindings_.push_back(std::move(binding));
  return FuncRef{engine_.runtime().entry_address(*adapter), &b.context, engine_.type_id(b.type),
                 adapter->number(), &b.type};
}

Result<CallResult> Store::call(const FuncRef& function, std::span<const Val> args) try {
  const FuncType& type = *function.type;
  bool fits = std::equal(args.begin(), args.end(), type.params.begin(), type.params.end(),
                         [](const Val& v, Type t) { return v.type == t; });
  if (!fits) {
    return Error{ErrorCode::kInvalidArgument,
                 "the arguments do not match the function's type " + to_string(type)};
  }
  std::vector<uint64_t> words{reinterpret_cast<uintptr_t>(function.context)};
  for (const Val& v : args) words.push_back(v.bits);
  Outcome outcome = engine_.runtime().invoke(MethodId(function.method), words);
  CallResult r;
  r.trap = engine_.describe(outcome.trap);
  if (!r.ok() || type.results.empty()) return r;
  r.results.push_back({type.results[0], outcome.bits});
  const uint64_t* further = static_cast<ContextHeader*>(function.context)->results;
  for (size_t i = 1; i < type.results.size(); ++i) {
    uint64_t bits =
        is_wide(type.results[i]) ? further[i - 1] : static_cast<uint32_t>(further[i - 1]);
    r.results.push_back({type.results[i], bits});
  }
  return r;
} catch (const std::exception&) { return out_of_memory(); }

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
