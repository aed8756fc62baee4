// vmctx.h: the records that compiled code reads and writes.
//
// Every function takes a context as its first argument: a VmContext for functions of a module, a
// HostContext for functions of the host. Both begin with the same word, the address of the results
// beyond the first: the callee writes them there, and the caller reads them from the *callee's*
// context right after the call, before anything else can run. One thread at a time uses a store, so
// the place needs no more protection than that.
//
// Fields that code treats as invariant (they never change once an instance can run): memory_base, table_base,
// table_size, results, the import records and the addresses of imported globals.
#pragma once

#include <cstddef>
#include <cstdint>

#include "embed/wasm/types.h"
#include "uptier/opcodes.h"

namespace uptier::wasm {

class Instance;
struct ModuleInfo;

// A function as calls see it. All zero is the null reference. 32 bytes: a table is indexed by a
// shift.
struct FuncRef {
  const void* entry = nullptr;  // stub of the method
  void* context = nullptr;      // its first argument
  uint32_t type_id = 0;         // Engine::type_id; 0 in a null reference
  uint32_t method = 0;          // MethodId::index()
  const FuncType* type = nullptr;
};
inline constexpr unsigned kFuncRefShift = 5;
static_assert(sizeof(FuncRef) == size_t{1} << kFuncRefShift);

// Memory that code accesses is divided into alias classes, so that the compilers may keep values of one
// class in registers across stores to another.
//
// The instances of a module share its methods, and an instance may import the exports of another. One
// body may contain code of both, so a place must have the same class for both. Therefore globals are
// divided by whether other instances can reach them, not by their owner.
inline constexpr uint8_t kInMemory = alias_class(1);  // the linear memory
inline constexpr uint8_t kInOwn = alias_class(2);  // globals that are no one else's, in the context
inline constexpr uint8_t kInShared = alias_class(3);   // exported and imported globals
inline constexpr uint8_t kInRecord = alias_class(4);   // a MemoryRecord
inline constexpr uint8_t kInCovered = alias_class(5);  // BuildContext::covered

// A memory's record; shared by all instances that import the memory.
struct MemoryRecord {
  uint8_t* base = nullptr;  // moves only where bounds are checked in code
  uint64_t size = 0;        // bytes
  uint32_t pages = 0;       // size / 64 KiB; fits, 65536 at most
};

// The beginning of every context.
struct ContextHeader {
  uint64_t* results = nullptr;  // results 1, 2, ... of the function that just returned
};

// The fixed part of an instance's context. Import records and globals follow, see VmLayout.
struct VmContext {
  ContextHeader header;
  Instance* instance = nullptr;
  uint8_t* memory_base = nullptr;
  MemoryRecord* memory = nullptr;
  FuncRef* table_base = nullptr;
  uint32_t table_size = 0;  // tables cannot grow
};

// A host function, as imported by one instance.
using HostCallback = void (*)(void* env, Instance& caller, const uint64_t* args,
                              uint64_t* results) noexcept;
struct HostContext {
  ContextHeader header;
  uint64_t* words = nullptr;  // arguments on the way in, results on the way out
  HostCallback callback = nullptr;
  void* env = nullptr;
  Instance* caller = nullptr;
  uint32_t param_count = 0;
  uint32_t result_count = 0;
};

// The offsets of the variable parts of a module's VmContext: the same for all of its instances.
struct VmLayout {
  uint32_t imports = 0;  // FuncRef per imported function
  uint32_t globals = 0;  // 8 bytes per global: the value, or the address of an imported one
  uint32_t size = 0;

  explicit VmLayout(const ModuleInfo& info);
  uint32_t import(uint32_t function) const {
    return imports + function * static_cast<uint32_t>(sizeof(FuncRef));
  }
  uint32_t global(uint32_t index) const { return globals + index * 8; }
};

}  // namespace uptier::wasm
