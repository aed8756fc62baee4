// linker.h: what imports are resolved from: functions of the host, and what instances export.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "embed/wasm/memory.h"
#include "embed/wasm/table.h"
#include "embed/wasm/types.h"
#include "embed/wasm/vmctx.h"

namespace uptier::wasm {

// A function of the host. `args` and `results` hold one word per value; the callback reads the low
// half of an i32 or f32 argument and stores such a result zero-extended. It ends the guest's call
// with a trap by Runtime::raise, and may call back into the store. `caller` is the instance that
// imported it. `env` is the host's own and must outlive every store that links it.
struct HostImport {
  std::string module;
  std::string name;
  FuncType type;
  HostCallback callback = nullptr;
  void* env = nullptr;
};

// Something that an import can be bound to.
using Extern = std::variant<std::monostate, HostImport, FuncRef, Table*, Memory*, Global>;

// Names for Externs. Thread: one at a time. Borrows memories, tables and instances; copies the
// rest.
class Linker {
 public:
  // Later definitions replace earlier ones of the same name.
  void define(HostImport function);
  void define(std::string module, std::string name, Extern value);
  // Defines all exports of an instance under a module name.
  void define_instance(const std::string& module, Instance& instance);

  // Returns the definition, or null.
  const Extern* find(std::string_view module, std::string_view name) const;

 private:
  std::map<std::pair<std::string, std::string>, Extern, std::less<>> definitions_;
};

}  // namespace uptier::wasm
