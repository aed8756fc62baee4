// engine.h: a WebAssembly engine on the tiering runtime. This is the header that users include.
//
//   Engine -> Module::load -> Store, Linker -> Store::instantiate -> Instance::invoke
//
// Law of lifetimes: an Engine outlives its Modules, a Module outlives the Stores it is instantiated
// in, and all that a Store made (instances, memories, tables, globals) lives until the Store ends.
// Law of threads: an Engine and a Module may be used by any thread; a Store, with all that is in
// it, by one thread at a time. Stores share the compiled code of a Module: code is made per
// function of a module, never per instance.
//
// Serves the MVP with sign extension, saturating conversions, multiple values, bulk memory and
// mutable globals. One memory and one table per module; no reference values, SIMD or threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "embed/wasm/instance.h"
#include "embed/wasm/linker.h"
#include "embed/wasm/memory.h"
#include "embed/wasm/module.h"
#include "embed/wasm/types.h"
#include "uptier/runtime.h"
#include "uptier/thread_safety.h"

namespace uptier::wasm {

struct EngineOptions {
  // Check every memory access in code, and reserve no address space. Memories fall back to this by
  // themselves when their 8 GiB of address space are refused.
  bool explicit_bounds = false;
  // A memory may not grow past this, nor a guarded one past 65,535 unless it begins with 65,536 or
  // says that this is its maximum.
  uint32_t max_pages = 65536;
  // Bytes that all memories of the engine may have together; what goes beyond is refused as the system
  // refuses it: memory.grow is -1.
  uint64_t max_memory = UINT64_MAX;
  uint32_t max_table_entries = 10000000;  // larger tables are refused
  // Note which blocks of functions have run (Module::covered), in every tier. A block that has is not
  // observed in code that is compiled later. Modules get other keys: their code has other blocks.
  bool cover = false;
  // Blind what modules choose, whatever Options::blind_constants says; off: as that says.
  bool blind_constants = true;
};

// The common parts of modules: the runtime, the numbers of function types, and adapters for host functions.
class Engine {
 public:
  // Creates an engine with a runtime of its own. `sink` as in Runtime::create.
  static Result<std::unique_ptr<Engine>> create(const Options& options,
                                                const EngineOptions& engine_options = {},
                                                TraceSink* sink = nullptr);
  // Creates an engine over a runtime that is borrowed and must outlive it.
  Engine(Runtime& runtime, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Runtime& runtime() { return *runtime_; }
  const EngineOptions& options() const { return options_; }
  MemoryBudget& memory_budget() { return memory_budget_; }

  // Returns the number by which indirect calls compare function types: never 0, the same for equal
  // types, for the engine's life. Thread: any.
  uint32_t type_id(const FuncType& type);

  // Returns the method that calls a host function of this type. Thread: any.
  Result<MethodId> adapter(const FuncType& type);

  // Returns what a trap means in WebAssembly's terms. Thread: any.
  TrapReport describe(const Trap& trap) const;

 private:
  void describe_in_words(const Trap& trap, TrapReport& r) const;

  friend class Module;
  class AdapterHost;

  // Registers the function of a method, for trap reports; called by Module.
  void name_method(const Module& module, MethodId method, uint32_t function);
  void forget_methods(std::span<const MethodId> methods);

  struct MethodOrigin {
    const Module* module = nullptr;
    uint32_t function = 0;
  };

  std::unique_ptr<Runtime> owned_runtime_;
  Runtime* runtime_;
  EngineOptions options_;
  MemoryBudget memory_budget_{options_.max_memory};
  mutable CheckedLock<std::mutex> mutex_;
  std::map<FuncType, uint32_t> type_ids_ UPTIER_GUARDED_BY(mutex_);
  std::map<FuncType, MethodId> adapters_ UPTIER_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, MethodOrigin> origins_ UPTIER_GUARDED_BY(mutex_);
  std::unique_ptr<AdapterHost> adapter_host_;
};

}  // namespace uptier::wasm
