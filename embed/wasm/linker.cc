#include "embed/wasm/linker.h"

#include "embed/wasm/instance.h"

namespace uptier::wasm {

void Linker::define(HostImport function) {
  auto key = std::make_pair(function.module, function.name);
  definitions_.insert_or_assign(std::move(key), Extern(std::move(function)));
}

void Linker::define(std::string module, std::string name, Extern value) {
  definitions_.insert_or_assign({std::move(module), std::move(name)}, std::move(value));
}

void Linker::define_instance(const std::string& module, Instance& instance) {
  for (const Export& e : instance.module().info().exports) {
    define(module, e.name, instance.find_export(e.name));
  }
}

const Extern* Linker::find(std::string_view module, std::string_view name) const {
  auto it = definitions_.find(std::make_pair(std::string(module), std::string(name)));
  return it == definitions_.end() ? nullptr : &it->second;
}

}  // namespace uptier::wasm
