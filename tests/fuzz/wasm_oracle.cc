#include "tests/fuzz/wasm_oracle.h"

#include <wabt/binary-reader.h>
#include <wabt/interp/binary-reader-interp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace uptier::fuzz {
namespace {

namespace interp = wabt::interp;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "oracle: %s\n", what);
  std::abort();
}

WasmOracle::Number number(wabt::Type type, const interp::Value& v) {
  using Kind = WasmOracle::Kind;
  if (type == wabt::Type::I32) return {Kind::kI32, v.Get<uint32_t>()};
  if (type == wabt::Type::I64) return {Kind::kI64, v.Get<uint64_t>()};
  uint64_t bits = 0;
  if (type == wabt::Type::F32) {
    auto f = v.Get<float>();
    std::memcpy(&bits, &f, sizeof f);
    return {Kind::kF32, bits};
  }
  auto d = v.Get<double>();
  std::memcpy(&bits, &d, sizeof d);
  return {Kind::kF64, bits};
}

interp::Value value(const WasmOracle::Number& n) {
  interp::Value v;
  v.Set(n.bits);  // a union: floats are passed as their bits
  return v;
}

}  // namespace

struct WasmOracle::State {
  interp::Store store;
  std::vector<interp::Module::Ptr> modules;
  std::vector<interp::Instance::Ptr> instances;

  interp::Ref find(size_t instance, const std::string& name) {
    auto module = store.UnsafeGet<interp::Module>(instances[instance]->module());
    const auto& exports = module->desc().exports;
    for (size_t n = 0; n < exports.size(); ++n) {
      if (exports[n].type.name == name) return instances[instance]->exports()[n];
    }
    require(false, "no such export");
    return interp::Ref::Null;
  }
};

WasmOracle::WasmOracle() : state_(new State) {}
WasmOracle::~WasmOracle() = default;

void WasmOracle::load(const std::vector<uint8_t>& bytes) {
  interp::ModuleDesc desc;
  wabt::Errors errors;
  auto read = interp::ReadBinaryInterp("random", bytes.data(), bytes.size(),
                                       wabt::ReadBinaryOptions(), &errors, &desc);
  require(wabt::Succeeded(read), "a module that cannot be read");
  state_->modules.push_back(interp::Module::New(state_->store, desc));
}

void WasmOracle::instantiate(size_t module, size_t from) {
  interp::RefVec imports;
  for (const auto& i : state_->modules[module]->desc().imports) {
    imports.push_back(state_->find(i.type.module == "env" ? 0 : from, i.type.name));
  }
  interp::Trap::Ptr trap;
  auto made =
      interp::Instance::Instantiate(state_->store, state_->modules[module].ref(), imports, &trap);
  require(!trap && made, "a module that cannot be instantiated");
  state_->instances.push_back(made);
}

WasmOracle::Answer WasmOracle::call(size_t instance, const std::string& name,
                                    const std::vector<Number>& args) {
  auto f = state_->store.UnsafeGet<interp::Func>(state_->find(instance, name));
  interp::Values params, results;
  for (const Number& n : args) params.push_back(value(n));
  interp::Trap::Ptr trap;
  Answer a;
  a.trapped = wabt::Failed(f->Call(state_->store, params, results, &trap));
  if (trap) a.why = trap->message();
  for (size_t n = 0; n < results.size(); ++n) {
    a.results.push_back(number(f->type().results[n], results[n]));
  }
  return a;
}

WasmOracle::Number WasmOracle::global(size_t instance, const std::string& name) const {
  auto g = state_->store.UnsafeGet<interp::Global>(state_->find(instance, name));
  return number(g->type().type, g->Get());
}

void WasmOracle::set_i32(size_t instance, const std::string& name, uint32_t value) {
  state_->store.UnsafeGet<interp::Global>(state_->find(instance, name))
      ->UnsafeSet(interp::Value::Make(value));
}

WasmOracle::Memory WasmOracle::memory(size_t instance, const std::string& name) const {
  auto m = state_->store.UnsafeGet<interp::Memory>(state_->find(instance, name));
  return {m->UnsafeData(), m->ByteSize()};
}

}  // namespace uptier::fuzz
