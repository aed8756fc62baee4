// module.h: a loaded module and the methods of its functions.
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "embed/wasm/log_places.h"
#include "embed/wasm/module_info.h"
#include "embed/wasm/vmctx.h"
#include "uptier/host.h"
#include "uptier/image.h"
#include "uptier/result.h"
#include "uptier/thread_safety.h"

namespace uptier::wasm {

class BodyValidator;
class Engine;
class SourceLines;

// The guards of a module's memory accesses.
enum class Bounds : uint8_t {
  kGuarded,   // 8 GiB are reserved after the base: an access outside faults, and the fault traps
  kExplicit,  // each access compares first; the base may move
  kUnfenced,  // guarded, and all 65,536 pages may be there: no fence after the last one
};
inline constexpr size_t kBoundsCount = 3;
inline constexpr bool is_guarded(Bounds b) { return b != Bounds::kExplicit; }

// A validated module. A function's method is registered when the first instance exports it or has it
// in a segment of elements, or code that calls it is described; once for each way of guarding
// memory. Nothing is compiled before its first call.
//
// Thread: any; all of it is constant but the method tables, which have a lock.
class Module {
 public:
  // Parses and validates. Errors: as read_module (kCorruptInput: malformed, kInvalidInput: invalid,
  // kUnsupported: past a limit of this engine); messages name the byte offset and the rule. With
  // Bodies::kLater a function whose body breaks a rule traps when it is called (TrapCode::kNoCode).
  static Result<std::unique_ptr<Module>> load(Engine& engine, ModuleBytes bytes,
                                              Bodies bodies = Bodies::kValidated);
  // The same from the result of read_module, for hosts that create an engine to fit the module
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

  // Makes a function log a line of text at a place; log_places.h has the form of requests. Thread:
  // one at a time, before any method of the module is registered. Errors: kInvalidInput, with the
  // rule that the request breaks; kInvalidArgument if it comes too late.
  Status log_at(std::string_view request);

  // Returns a byte for each byte of the module, as in BuildContext::covered; empty unless
  // EngineOptions::cover. Code writes them; read them when none runs.
  std::span<const uint8_t> covered() const { return {covered_.get(), covered_size_}; }

  // Returns a hash of all that the module's methods depend on: its bytes, the guards of its memory and
  // the numbers of its types in the engine. None for modules with log places or coverage. Cost: the
  // first call hashes the module's bytes.
  ContentHash content(Bounds bounds);

  // Returns the method of an own function (not of an import), registering it if it has none yet.
  // Errors: kResourceExhausted when the runtime has no room.
  Result<MethodId> method(Bounds bounds, uint32_t function);
  // The same of all own functions: what nothing refers to is in the runtime's report then, and may be
  // compiled ahead of its first call.
  Result<std::vector<MethodId>> methods(Bounds bounds);

 private:
  // The methods for one kind of memory guards, and the host that builds them. Most functions of a large
  // module are never referred to at run time, and take four bytes here.
  struct MethodSet;
  MethodSet& set_of(Bounds bounds);
  Result<MethodId> add_method(MethodSet& set, uint32_t function);
  // Takes all methods of a set out of service.
  void remove(MethodSet& set);

  // Memory from calloc(), which does not touch what the kernel has zeroed.
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };

  Module(Engine& engine, ModuleInfo info);
  uint64_t key_of(Bounds bounds) const;
  Status build(MethodSet& set, MethodId m, FunctionBuilder& b);
  // Returns where an offset of the module lies in its sources. Reads the debug sections the first time.
  SourcePositions positions(uint32_t offset);
  // Validates the body of an own function, unless it has been.
  Status validate(uint32_t function);

  Engine& engine_;
  ModuleInfo info_;
  VmLayout layout_;
  uint64_t key_;
  std::vector<uint32_t> type_ids_;
  uint32_t max_results_ = 0;
  CheckedLock<std::mutex>
      mutex_;  // of the sets, except ids that are there. Comes before the runtime's
  CheckedLock<std::mutex> bodies_mutex_;
  std::atomic<uint32_t> bodies_wanted_{0};  // functions that are to be built, and not validated
  std::unique_ptr<BodyValidator> bodies_;   // null where all are validated
  std::vector<bool> validated_ UPTIER_GUARDED_BY(bodies_mutex_);  // by function
  std::array<std::unique_ptr<MethodSet>, kBoundsCount> sets_;     // by Bounds
  LogPlaces log_places_;
  // The runtime calls positions() with a lock of its own, so nothing else is locked within.
  CheckedLock<std::mutex> lines_mutex_;
  bool lines_read_ UPTIER_GUARDED_BY(lines_mutex_) = false;
  std::unique_ptr<SourceLines> lines_ UPTIER_GUARDED_BY(lines_mutex_);  // null: there are none
  std::once_flag hashed_;
  ContentHash bytes_hash_;
  std::vector<uint32_t> by_name_;  // exports, as they are looked up
  std::unique_ptr<uint8_t[], Free> covered_;
  size_t covered_size_ = 0;
};

}  // namespace uptier::wasm
