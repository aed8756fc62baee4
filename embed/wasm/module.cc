#include "embed/wasm/module.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <unordered_map>
#include <utility>

#include "embed/wasm/build_function.h"
#include "embed/wasm/engine.h"
#include "embed/wasm/read_module.h"
#include "embed/wasm/sections.h"
#include "embed/wasm/source_lines.h"
#include "embed/wasm/validate_bodies.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {

Result<std::unique_ptr<Module>> Module::load(Engine& engine, ModuleBytes bytes, Bodies bodies) try {
  Result<ModuleInfo> info = read_module(std::move(bytes), bodies);
  if (!info) return info.error();
  return make(engine, std::move(*info));
} catch (const std::exception&) { return out_of_memory(); }

std::unique_ptr<Module> Module::make(Engine& engine, ModuleInfo info) {
  return std::unique_ptr<Module>(new Module(engine, std::move(info)));
}

Module::Module(Engine& engine, ModuleInfo info)
    : engine_(engine), info_(std::move(info)), layout_(info_), key_(module_key(info_.bytes)) {
  for (const FuncType& t : info_.types) type_ids_.push_back(engine.type_id(t));
  for (uint32_t f = info_.imported_functions; f < info_.functions.size(); ++f) {
    max_results_ = std::max(max_results_, static_cast<uint32_t>(info_.type_of(f).results.size()));
  }
  by_name_.resize(info_.exports.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::ranges::sort(by_name_, {},
                    [&](uint32_t e) { return std::string_view(info_.exports[e].name); });
  // Before the sets, whose keys depend on it.
  if (engine.options().cover) {
    const std::span<const uint8_t> bytes = info_.bytes;
    covered_.reset(static_cast<uint8_t*>(std::calloc(std::max<size_t>(bytes.size(), 1), 1)));
    covered_size_ = covered_ != nullptr ? bytes.size() : 0;
  }
  for (Bounds b : {Bounds::kGuarded, Bounds::kExplicit, Bounds::kUnfenced}) {
    sets_[static_cast<size_t>(b)] = std::make_unique<MethodSet>(*this, b);
  }
  if (info_.bodies == Bodies::kValidated) return;
  bodies_ = info_.rules != nullptr ? std::make_unique<BodyValidator>(std::move(info_.rules))
                                   : std::make_unique<BodyValidator>(info_);
  validated_.resize(info_.functions.size());
}

Module::~Module() {
  for (auto& set : sets_) remove(*set);
}

// Exports of a name are unique.
const Export* Module::find_export(std::string_view name) const {
  auto name_of = [&](uint32_t e) { return std::string_view(info_.exports[e].name); };
  auto at = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return at == by_name_.end() || name_of(*at) != name ? nullptr : &info_.exports[*at];
}

namespace {

constexpr uint64_t kCoveredKey = 0x636f7665726564;  // "covered"

}  // namespace

// ---- Methods ----------------------------------------------------------------------------------

// Bodies that compare and bodies that do not are different, so they must not share profiles: their
// keys differ, and so with coverage. With and without a fence they are alike; who owns its memory has the one or the other.
uint64_t Module::key_of(Bounds bounds) const {
  const uint64_t own = covered_size_ != 0 ? key_ ^ kCoveredKey : key_;
  if (bounds == Bounds::kExplicit) return ~own;
  const bool both = bounds == Bounds::kUnfenced && info_.imports_memory;
  return both ? own ^ 1 : own;
}

struct Module::MethodSet final : Host, FunctionMethods {
  using Number = std::atomic<uint32_t>;

  MethodSet(Module& m, Bounds b)
      : module(m),
        bounds(b),
        key(m.key_of(b)),
        count(m.info_.functions.size() - m.info_.imported_functions),
        numbers(static_cast<Number*>(std::calloc(std::max<size_t>(count, 1), sizeof(Number)))) {}
  Status build(MethodId m, FunctionBuilder& b) override { return module.build(*this, m, b); }
  ContentHash content(MethodId) noexcept override {
    std::call_once(hashed, [&] { hash = module.content(bounds); });
    return hash;
  }
  Result<MethodId> callee(MethodId, uint32_t function) override {
    const bool own = function >= module.info_.imported_functions &&
                     function - module.info_.imported_functions < count;
    if (!own) return Error{ErrorCode::kNotFound, "the module has no such function of its own"};
    return module.add_method(*this, function);
  }
  SourcePositions positions(MethodId, uint32_t location) override {
    return module.positions(location);
  }
  Result<MethodId> method_of(uint32_t function) override {
    return module.add_method(*this, function);
  }

  Module& module;
  const Bounds bounds;
  const uint64_t key;
  const size_t count;
  // By own function: 1 + MethodId::number(), 0 where it has none.
  std::unique_ptr<Number[], Free> numbers;
  // With the module's mutex.
  std::unordered_map<uint32_t, uint32_t> function_of;  // of methods, by number()
  std::once_flag hashed;
  ContentHash hash;
};

Module::MethodSet& Module::set_of(Bounds bounds) { return *sets_[static_cast<size_t>(bounds)]; }

Result<MethodId> Module::method(Bounds bounds, uint32_t function) try {
  return add_method(set_of(bounds), function);
} catch (const std::exception&) { return out_of_memory(); }

// Log places are numbered by the runtime, and coverage is counted at an address.
ContentHash Module::content(Bounds bounds) {
  if (covered_size_ != 0 || !log_places_.empty()) return {};
  std::call_once(hashed_, [&] {
    const std::span<const uint8_t> bytes[] = {info_.bytes};
    bytes_hash_ = content_hash(bytes);
  });
  constexpr uint8_t kForm[] = "uptier wasm module 1";
  const uint8_t guards[] = {static_cast<uint8_t>(bounds)};
  const std::span numbers(reinterpret_cast<const uint8_t*>(type_ids_.data()),
                          type_ids_.size() * sizeof(uint32_t));
  const std::span<const uint8_t> pieces[] = {kForm, bytes_hash_.bytes, guards, numbers};
  return content_hash(pieces);
}

Result<std::vector<MethodId>> Module::methods(Bounds bounds) try {
  MethodSet& set = set_of(bounds);
  std::vector<MethodId> all;
  all.reserve(set.count);
  for (uint32_t f = info_.imported_functions; f < info_.functions.size(); ++f) {
    Result<MethodId> m = add_method(set, f);
    if (!m) return m.error();
    all.push_back(*m);
  }
  return all;
} catch (const std::exception&) { return out_of_memory(); }

Result<MethodId> Module::add_method(MethodSet& set, uint32_t function) {
  if (set.numbers == nullptr) {
    return Error{ErrorCode::kResourceExhausted, "memory for the module's functions is refused"};
  }
  std::atomic<uint32_t>& there = set.numbers[function - info_.imported_functions];
  // Relaxed: the number alone is enough to call the runtime with.
  if (uint32_t n = there.load(std::memory_order_relaxed)) return MethodId(n - 1);
  const Held lock(mutex_);
  if (uint32_t n = there.load(std::memory_order_relaxed)) return MethodId(n - 1);
  MethodInfo m{{set.key, function},
               info_.name_of(function),
               compiled_signature(info_.type_of(function)),
               nullptr};
  Result<MethodId> id = engine_.runtime().add_method(set, std::move(m));
  if (!id) return id;
  const bool whole = finishes([&] {
    engine_.name_method(*this, *id, function);
    set.function_of[id->number()] = function;
  });
  if (whole) {
    there.store(id->number() + 1, std::memory_order_relaxed);
    return id;
  }
  engine_.runtime().remove_methods({&*id, 1});
  engine_.forget_methods({&*id, 1});
  return out_of_memory();
}

// Bodies that are being built meanwhile may register more methods. Allocates nothing: a module is also
// destroyed after memory was refused.
void Module::remove(MethodSet& set) {
  std::array<MethodId, 4096> some;
  for (;;) {
    size_t count = 0;
    {
      const Held lock(mutex_);
      auto next = set.function_of.begin();
      while (next != set.function_of.end() && count < some.size()) {
        some[count++] = MethodId(next->first);
        next = set.function_of.erase(next);
      }
    }
    if (count == 0) return;
    const std::span<MethodId> batch(some.data(), count);
    std::ranges::sort(batch, {}, [](MethodId m) { return m.number(); });
    engine_.runtime().remove_methods(batch);
    engine_.forget_methods(batch);
  }
}

// The last frame is the function itself; those before it were inlined when the module was made.
SourcePositions Module::positions(uint32_t offset) {
  const Held lock(lines_mutex_);
  if (!std::exchange(lines_read_, true)) {
    Result<SourceLines> read = SourceLines::read(info_.bytes);
    if (read) lines_ = std::make_unique<SourceLines>(std::move(*read));
  }
  SourcePositions found;
  if (lines_ == nullptr) return found;
  for (dwarf::SourceFrame& f : lines_->at(offset)) {
    found.push_back({std::move(f.file), f.line, f.column, std::move(f.function)});
  }
  if (!found.empty()) found.back().function.clear();
  return found;
}

Status Module::validate(uint32_t function) {
  if (!bodies_) return {};
  bodies_wanted_.fetch_add(1, std::memory_order_relaxed);
  const Held lock(bodies_mutex_);
  bodies_wanted_.fetch_sub(1, std::memory_order_relaxed);
  if (validated_[function]) return {};
  Status s = bodies_->validate(info_, function, 1);
  validated_[function] = s.ok();
  return s;
}

// A stretch at a time, so that who builds one function meanwhile need not wait for all. A mutex that is
// given up and taken again goes to who is awake, so this stands back while somebody wants it.
Status Module::validate_bodies() {
  if (!bodies_) return {};
  constexpr uint32_t kStretch = 2 << 10;  // bytes, about
  const auto count = static_cast<uint32_t>(info_.functions.size());
  for (uint32_t first = info_.imported_functions; first < count;) {
    while (bodies_wanted_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
    const Held lock(bodies_mutex_);
    uint32_t end = first;
    const uint64_t last = uint64_t{info_.functions[first].body_begin} + kStretch;
    // Valid entries may be in use by a build, and are not written again.
    while (end < count && !validated_[end] && info_.functions[end].body_begin < last) ++end;
    if (end == first) {
      ++first;
      continue;
    }
    // Only the whole module determines which of several faults is reported.
    if (Status stretch = bodies_->validate(info_, first, end - first); !stretch) {
      Result<ModuleInfo> whole = read_module(info_.bytes);
      return whole ? stretch.error() : whole.error();
    }
    std::fill(validated_.begin() + first, validated_.begin() + end, true);
    first = end;
  }
  return {};
}

Status Module::log_at(std::string_view request) {
  {
    const Held lock(mutex_);
    const auto has_methods = [](const auto& set) { return !set->function_of.empty(); };
    if (std::ranges::any_of(sets_, has_methods)) {
      return Error{ErrorCode::kInvalidArgument,
                   "log place \"" + std::string(request) +
                       "\": the module has methods already; name places before it is instantiated"};
    }
  }
  return log_places_.add(info_, engine_.runtime(), request);
}

Status Module::build(MethodSet& set, MethodId m, FunctionBuilder& b) {
  uint32_t function = 0;
  {
    const Held lock(mutex_);
    auto it = set.function_of.find(m.number());
    if (it == set.function_of.end()) {
      return Error{ErrorCode::kInvalidArgument, "the method does not belong to this module"};
    }
    function = it->second;
  }
  if (Status s = validate(function); !s) return s;
  return build_function({info_,
                         layout_,
                         set.bounds,
                         set,
                         type_ids_,
                         nullptr,
                         log_places_.find(function),
                         {covered_.get(), covered_size_}},
                        function, b);
}

}  // namespace uptier::wasm
