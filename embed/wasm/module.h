// module.h: a loaded module and the methods of its functions.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "embed/wasm/module_info.h"
#include "embed/wasm/vmctx.h"
#include "uptier/host.h"
#include "uptier/result.h"

namespace uptier::wasm {

class BodyValidator;
class Engine;

// How the code of a module guards its memory accesses.
enum class Bounds : uint8_t {
  kGuarded,   // 8 GiB are reserved behind the base: an access outside faults, and the fault traps
  kExplicit,  // each access compares first; the base may move
  kUnfenced,  // guarded, and all 65,536 pages may be there: no fence behind the last one
};
inline constexpr size_t kBoundsCount = 3;
inline constexpr bool is_guarded(Bounds b) { return b != Bounds::kExplicit; }


// A validated module. Methods are registered when the first instance needs them, once for each way
// of guarding memory; nothing is compiled before its first call.
//
// Thread: any; all of it is constant but the method tables, which have a lock.
class Module {
 public:
  // Parses and validates. Errors: as read_module (kCorruptInput: malformed, kInvalidInput: invalid,
  // kUnsupported: past a limit of this engine); messages name the byte offset and the rule. With
  // Bodies::kLater a function whose body breaks a rule traps when it is called (TrapCode::kNoCode).
  static Result<std::unique_ptr<Module>> load(Engine& engine, ModuleBytes bytes,
                                              Bodies bodies = Bodies::kValidated);
  // The same of what read_module has returned, for hosts that make an engine to suit the module
  // (Options::max_methods).
  static std::unique_ptr<Module> make(Engine& engine, ModuleInfo info);
  // Takes the methods out of service. No instance may be left.
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Engine& engine() const { return engine_; }
  const ModuleInfo& info() const { return info_; }
  const VmLayout& layout() const { return layout_; }
  // Returns the module's name across processes, see module_key.
  uint64_t key() const { return key_; }
  // Returns the number of ModuleInfo::types[type] in the engine.
  uint32_t type_id(uint32_t type) const { return type_ids_[type]; }
  // Returns the longest list of results among the module's own functions.
  uint32_t max_results() const { return max_results_; }

  // Returns the export of that name, or null.
  const Export* find_export(std::string_view name) const;

  // Validates all bodies that have not been, with Bodies::kLater: for hosts that have something to do
  // meanwhile, on another thread. Errors: as load.
  Status validate_bodies();

  // Returns the methods of the module's own functions (without imports), registering them first if
  // need be. Errors: kResourceExhausted when the runtime has no room.
  Result<std::span<const MethodId>> methods(Bounds bounds);

 private:
  // One way of guarding memory: the host that builds for it, and its methods.
  struct MethodSet final : Host {
    MethodSet(Module& m, Bounds b) : module(m), bounds(b) {}
    Status build(MethodId m, FunctionBuilder& b) override { return module.build(*this, m, b); }
    Module& module;
    Bounds bounds;
    std::vector<MethodId> methods;                       // of functions past the imports
    std::unordered_map<uint32_t, uint32_t> function_of;  // MethodId::index() -> function index
  };

  Module(Engine& engine, ModuleInfo info);
  Status register_methods(MethodSet& set);
  uint64_t key_of(Bounds bounds) const;
  Status build(const MethodSet& set, MethodId m, FunctionBuilder& b);
  // Validates the body of an own function, unless it has been.
  Status validate(uint32_t function);

  Engine& engine_;
  ModuleInfo info_;
  VmLayout layout_;
  uint64_t key_;
  std::vector<uint32_t> type_ids_;
  uint32_t max_results_ = 0;
  std::mutex mutex_;  // held while a MethodSet is filled; a filled one is constant
  std::mutex bodies_mutex_;
  std::atomic<uint32_t> bodies_wanted_{0};  // functions that are to be built, and not validated
  std::unique_ptr<BodyValidator> bodies_;   // null where all are validated
  std::vector<bool> validated_;             // by function
  std::array<std::unique_ptr<MethodSet>, kBoundsCount> sets_;  // by Bounds
};

}  // namespace uptier::wasm
