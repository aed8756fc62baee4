// Inlinees: what the optimizing compiler may know of other methods, for one compilation.
//
// Bodies are those that were kept when the methods were described (Method::body): the host is not
// asked again, for its answer could wait for a lock that the one who waits for this compilation
// holds. So a method that was never called cannot be inlined, nor one that is large.
//
//   Thread: one compilation's. find() takes the state mutex; the caller must not hold it.
#pragma once

#include <map>
#include <memory>

#include "jit/inlinee.h"

namespace uptier::tiering {

class RuntimeImpl;

class Inlinees final : public jit::InlineeSource {
 public:
  // Without `profiles` methods are told of, but not what was observed of them.
  Inlinees(RuntimeImpl& runtime, bool profiles) : runtime_(runtime), profiles_(profiles) {}

  const jit::Inlinee* find(MethodId m) override;

 private:
  RuntimeImpl& runtime_;
  bool profiles_;
  std::map<uint32_t, std::unique_ptr<jit::Inlinee>> known_;  // null: not to be inlined
};

}  // namespace uptier::tiering
