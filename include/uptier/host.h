// host.h: what an embedder brings.
//
// Three ways in, which may be mixed method by method:
//   1. `build` describes the body to a FunctionBuilder, and the library makes every tier and copy;
//   2. a C function is the method's code in Tier::kHost (an interpreter's entry with the method's
//      signature, or code that the host made itself): it gets a stub, counting and reports, and
//      leaves Tier::kHost when `build` succeeds;
//   3. both: the C function runs first, `build` is asked when the method is hot.
#pragma once

#include <cstdint>
#include <string>

#include "uptier/builder.h"
#include "uptier/ids.h"
#include "uptier/profile.h"
#include "uptier/result.h"

namespace uptier {

class Host {
 public:
  virtual ~Host() = default;

  // Describes the body of `m`. Called when the method is first compiled and again for each further
  // compilation, each time with the same result (same blocks in the same order).
  //
  // Thread: a calling thread or the runtime's worker, two methods at a time possibly; never the
  // same
  //         method twice at once.
  // Errors: the method then stays in the code it has; a first compile that fails makes its calls
  //         trap (TrapCode::kHost) and the message appears in the report.
  virtual Status build(MethodId m, FunctionBuilder& b) = 0;
};

struct MethodInfo {
  MethodKey key;
  std::string name;
  Signature signature;
  // Optional: code that runs the method in Tier::kHost until the library's own is installed. A C
  // function with exactly `signature`.
  const void* host_entry = nullptr;
};

}  // namespace uptier
