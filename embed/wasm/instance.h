// instance.h: stores and instances.
//
// A store is one guest's world: instances that are linked with each other, and the memories, tables
// and globals they share. Nothing in it dies before the store does, so a function reference in a
// table is always good, even one of an instance whose start function trapped.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embed/wasm/linker.h"
#include "embed/wasm/memory.h"
#include "embed/wasm/module.h"
#include "embed/wasm/table.h"
#include "embed/wasm/vmctx.h"
#include "uptier/opcodes.h"
#include "uptier/result.h"

namespace uptier::wasm {

class Engine;
class Instance;

// A frame of a module's function that a trap has ended.
struct TrapFrame {
  uint32_t function = 0;  // index in the module
  std::string function_name;
  uint32_t offset = 0;  // of the call or instruction in the module's bytes
};

// Why a call ended without results, in WebAssembly's terms. code is kNone when it did not.
struct TrapReport {
  TrapCode code = TrapCode::kNone;
  std::string message;  // trap_text(code)
  // Where, when the trap came from a function of a module (has_location).
  bool has_location = false;
  uint32_t function = 0;  // index in the module
  std::string function_name;
  uint32_t offset = 0;  // of the instruction in the module's bytes; 0: the function's entry
  // The frames that the trap has ended, innermost first, without those of host functions: the first is the place
  // above. Runtime::trap_stack says which there may be.
  std::vector<TrapFrame> stack;
  uint64_t detail = 0;  // what Runtime::raise passed, e.g. the exit code for TrapCode::kExit
  // The function had no code because memory for it was refused; or there is none to say why.
  bool no_memory = false;

  bool trapped() const { return code != TrapCode::kNone; }
  // Returns "integer divide by zero at 0x1f in func[3] <div>", as much of it as is known.
  std::string text() const;
};

// The result of a call: values, or a trap.
struct CallResult {
  std::vector<Val> results;
  TrapReport trap;

  bool ok() const { return !trap.trapped(); }
};

// The result of an instantiation. Exactly one of the three is set.
struct Instantiation {
  Instance* instance = nullptr;  // belongs to the store
  // Not linked: kNotFound (unknown import) or kInvalidInput (incompatible import type); or
  // kResourceExhausted.
  std::optional<Error> error;
  TrapReport trap;  // a segment did not fit, or the start function trapped

  bool ok() const { return instance != nullptr; }
  bool unlinkable() const { return error && error->code != ErrorCode::kResourceExhausted; }
};

class Store {
 public:
  explicit Store(Engine& engine);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Engine& engine() const { return engine_; }

  // Links, allocates, copies the active segments in order and runs the start function. Writes to
  // imported memories and tables before a trap are kept.
  Instantiation instantiate(Module& module, const Linker& linker);

  // Things of the host's own, to be defined in a Linker.
  Result<Memory*> create_memory(const Limits& limits);
  Result<Table*> create_table(const Limits& limits);
  Global create_global(GlobalType type, uint64_t bits);

  // Calls a function with arguments of its types. Errors: kInvalidArgument when they are not. May
  // be nested inside host functions; attaches the thread to the runtime for the duration.
  Result<CallResult> call(const FuncRef& function, std::span<const Val> args);

 private:
  friend class Instance;
  friend class Instantiator;
  // Makes the record of a host function for the instance that imports it.
  Result<FuncRef> bind_host(const HostImport& function, Instance& caller);

  struct HostBinding {
    HostContext context;
    std::vector<uint64_t> words;
    FuncType type;
  };

  Engine& engine_;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::vector<std::unique_ptr<HostBinding>> bindings_;
  std::deque<uint64_t> global_cells_;  // of host globals; addresses stay
};

// An instance of a module. Thread: one at a time, with its store.
class Instance {
 public:
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  Store& store() const { return store_; }
  Module& module() const { return module_; }

  // Returns the export with this name; std::monostate if there is none.
  Extern find_export(std::string_view name);
  // Returns memory 0 or table 0, own or imported; null when there is none.
  Memory* memory() const { return memory_; }
  Table* table() const { return table_; }

  // Returns the function with this index, own or imported; the null reference if the runtime has no room
  // for its method. Functions that are exported or in element segments always have one.
  FuncRef function(uint32_t index) const;
  Global global(uint32_t index) const;

  // Calls an exported function. Errors: kNotFound, or as Store::call.
  Result<CallResult> invoke(std::string_view name, std::span<const Val> args = {});

  VmContext* context() { return reinterpret_cast<VmContext*>(words_.get()); }

  // The bulk instructions. If a range is out of bounds, each returns false and changes nothing.
  bool memory_init(uint32_t segment, uint64_t to, uint64_t from, uint64_t count) noexcept;
  bool table_init(uint32_t segment, uint64_t to, uint64_t from, uint64_t count) noexcept;
  void drop_data(uint32_t segment) noexcept { data_dropped_[segment] = true; }
  void drop_elem(uint32_t segment) noexcept { elem_dropped_[segment] = true; }

 private:
  friend class Instantiator;
  Instance(Store& store, Module& module);

  struct alignas(32) Word32 {
    std::byte bytes[32];
  };

  Store& store_;
  Module& module_;
  std::unique_ptr<Word32[]> words_;  // the VmContext
  std::vector<uint64_t> results_;    // ContextHeader::results
  Memory* memory_ = nullptr;
  Table* table_ = nullptr;
  Bounds bounds_ = Bounds::kGuarded;
  std::vector<bool> data_dropped_;
  std::vector<bool> elem_dropped_;
};

}  // namespace uptier::wasm
