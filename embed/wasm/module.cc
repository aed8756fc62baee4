#include "embed/wasm/module.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "embed/wasm/build_function.h"
#include "embed/wasm/engine.h"
#include "embed/wasm/hash.h"
#include "embed/wasm/read_module.h"
#include "embed/wasm/validate_bodies.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {

VmLayout::VmLayout(const ModuleInfo& info) {
  auto round_up = [](size_t n) {
    return (n + sizeof(FuncRef) - 1) / sizeof(FuncRef) * sizeof(FuncRef);
  };
  imports = static_cast<uint32_t>(round_up(sizeof(VmContext)));
  globals = imports + info.imported_functions * static_cast<uint32_t>(sizeof(FuncRef));
  size = static_cast<uint32_t>(round_up(globals + info.globals.size() * 8));
}

Result<std::unique_ptr<Module>> Module::load(Engine& engine, ModuleBytes bytes, Bodies bodies) try {
  Result<ModuleInfo> info = read_module(std::move(bytes), bodies);
  if (!info) return info.error();
  return make(engine, std::move(*info));
} catch (const std::exception&) { return out_of_memory(); }

std::unique_ptr<Module> Module::make(Engine& engine, ModuleInfo info) {
  return std::unique_ptr<Module>(new Module(engine, std::move(info)));
}

Module::Module(Engine& engine, ModuleInfo info)
    : engine_(engine), info_(std::move(info)), layout_(info_), key_(hash_bytes(info_.bytes)) {
  for (const FuncType& t : info_.types) type_ids_.push_back(engine.type_id(t));
  for (uint32_t f = info_.imported_functions; f < info_.functions.size(); ++f) {
    max_results_ = std::max(max_results_, static_cast<uint32_t>(info_.type_of(f).results.size()));
  }
  if (info_.bodies == Bodies::kValidated) return;
  bodies_ = info_.rules != nullptr ? std::make_unique<BodyValidator>(std::move(info_.rules))
                                   : std::make_unique<BodyValidator>(info_);
  validated_.resize(info_.functions.size());
}

Module::~Module() {
  for (auto& set : sets_) {
    if (!set) continue;
    engine_.runtime().remove_methods(set->methods);
    engine_.forget_methods(set->methods);
  }
}

const Export* Module::find_export(std::string_view name) const {
  for (const Export& e : info_.exports) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

Result<std::span<const MethodId>> Module::methods(Bounds bounds) try {
  std::lock_guard lock(mutex_);
  auto& slot = sets_[static_cast<size_t>(bounds)];
  if (!slot) {
    auto set = std::make_unique<MethodSet>(*this, bounds);
    if (Status s = register_methods(*set); !s) return s.error();
    slot = std::move(set);
  }
  return std::span<const MethodId>(slot->methods);
} catch (const std::exception&) { return out_of_memory(); }

// The two ways of guarding memory are different bodies, so they must not share profiles: their keys
// differ.
Status Module::register_methods(MethodSet& set) {
  uint64_t key = set.bounds == Bounds::kGuarded ? key_ : ~key_;
  Status added;
  const bool whole = finishes([&] {
    set.methods.reserve(info_.functions.size());
    for (uint32_t f = info_.imported_functions; f < info_.functions.size() && added; ++f) {
      MethodInfo m{
          {key, f}, info_.functions[f].name, compiled_signature(info_.type_of(f)), nullptr};
      Result<MethodId> id = engine_.runtime().add_method(set, std::move(m));
      if (!id) {
        added = id.error();
        break;
      }
      set.methods.push_back(*id);
      set.function_of[id->index()] = f;
    }
    if (added) engine_.name_methods(*this, set.methods);
  });
  if (whole && added) return {};
  engine_.runtime().remove_methods(set.methods);
  engine_.forget_methods(set.methods);
  return whole ? added : out_of_memory();
}

Status Module::validate(uint32_t function) {
  if (!bodies_) return {};
  bodies_wanted_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(bodies_mutex_);
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
    std::lock_guard lock(bodies_mutex_);
    uint32_t end = first;
    const uint64_t last = uint64_t{info_.functions[first].body_begin} + kStretch;
    // What is valid is being built from, perhaps, and is not written again.
    while (end < count && !validated_[end] && info_.functions[end].body_begin < last) ++end;
    if (end == first) {
      ++first;
      continue;
    }
    // Which of several faults is to be named, only the whole module says.
    if (!bodies_->validate(info_, first, end - first)) return read_module(info_.bytes).error();
    std::fill(validated_.begin() + first, validated_.begin() + end, true);
    first = end;
  }
  return {};
}

Status Module::build(const MethodSet& set, MethodId m, FunctionBuilder& b) {
  auto it = set.function_of.find(m.index());
  if (it == set.function_of.end()) {
    return Error{ErrorCode::kInvalidArgument, "the method does not belong to this module"};
  }
  if (Status s = validate(it->second); !s) return s;
  build_function({info_, layout_, set.bounds, set.methods, type_ids_}, it->second, b);
  return {};
}

}  // namespace uptier::wasm
