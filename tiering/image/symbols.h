// Symbols: the names of what code refers to, and where that is in this process.
//
//   Thread: any. All that it refers to outlives it.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/code/code_ref.h"
#include "profile/base/bytes.h"
#include "tiering/image/loaded_objects.h"
#include "tiering/image/method_record.h"
#include "tiering/model/method.h"
#include "tiering/model/method_table.h"
#include "uptier/result.h"

namespace uptier::jit {
class StubTable;
struct Helpers;
}  // namespace uptier::jit

namespace uptier::tiering {

// Returns the routines of the library that code may refer to, in an order that only a new build of
// the library changes. Null ones do not exist in this runtime.
std::vector<const void*> routines_of(const jit::Helpers& helpers);

// Names fields, for an image.
class SymbolNames {
 public:
  SymbolNames(const jit::Helpers& helpers, const jit::StubTable& stubs, const MethodTable& methods);
  // Returns the field with a name for what it refers to, in code of `m`. Errors: kUnsupported, what
  // it is that has no name.
  Result<SymbolRef> name(const jit::CodeRef& ref, const Method& m);
  // The build ids of the objects named so far, by number.
  const std::vector<profile::Bytes>& objects() const { return used_; }

 private:
  Result<Symbol> name_target(const void* target, const Method& m);
  Result<Symbol> name_address(const void* target);

  const jit::Helpers& helpers_;
  const jit::StubTable& stubs_;
  const MethodTable& methods_;
  std::vector<const void*> routines_;
  LoadedObjects objects_ = LoadedObjects::read();
  std::vector<profile::Bytes> used_;
};

// Finds what names mean in this process.
class SymbolValues {
 public:
  SymbolValues(const jit::Helpers& helpers, const jit::StubTable& stubs,
               const MethodTable& methods);
  // Takes the objects of an image. Those that are not loaded have no functions.
  void set_objects(std::span<const profile::Bytes> build_ids);

  // Returns the full address that a field of code of `m` refers to, or the contents of the field
  // (FilledRef). `callees` receives the methods that it calls, each once. May register methods
  // (Host::callee): as Host::build. Errors: kNotFound, what is missing.
  Result<uint64_t> value(const SymbolRef& ref, Method& m, std::vector<MethodId>& callees) const;

 private:
  Result<uint64_t> stub_of(uint32_t function, Method& m, std::vector<MethodId>& callees) const;
  Result<uint64_t> host_code(const Symbol& symbol) const;

  const jit::Helpers& helpers_;
  const jit::StubTable& stubs_;
  const MethodTable& methods_;
  std::vector<const void*> routines_;
  struct Found {
    uintptr_t base = 0;                                 // 0 in executables that are not relocated
    std::vector<std::pair<uintptr_t, uintptr_t>> code;  // empty: not loaded
  };
  std::vector<Found> objects_;
};

}  // namespace uptier::tiering
