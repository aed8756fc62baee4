// Inlinee: a method whose body may replace its calls, with its profile.
//
// The compiler asks an InlineeSource, which knows the methods. The compiler itself knows neither
// where bodies come from nor which methods exist.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"
#include "jit/ir/inline_path.h"
#include "uptier/ids.h"

namespace uptier::jit {

// An observed target of an indirect call.
struct TargetShare {
  MethodId method;
  uint64_t count = 0;           // estimated executions
  const void* entry = nullptr;  // the address that such a call jumps to: the method's stub
  Signature signature;
  std::string name;
};

// The observed targets of an indirect call, most frequent first. `total` includes all others.
struct SiteTargets {
  SiteId site = 0;
  uint64_t total = 0;
  std::vector<TargetShare> targets;
};

// The values that a value probe of the body is assumed to see: from `min` to `max`. This is a
// guess: code that relies on it has a guard.
struct SiteValues {
  SiteId site = 0;
  int64_t min = 0;
  int64_t max = 0;

  friend bool operator==(const SiteValues&, const SiteValues&) = default;
};

// The estimated profile of a body. A profile is advice: nothing in it needs to be true.
struct BodyProfile {
  std::vector<uint64_t> blocks = {};      // executions by block site - 1; empty: not known
  std::vector<SiteTargets> targets = {};  // of indirect calls, by rising site
  double sample = 1;  // executions of `blocks` that one observed execution stands for
};

struct Inlinee {
  Function function;  // as built
  BodyProfile profile = {};
  bool to_host = false;  // its guards leave for the host's interpreter
  // Blocks that its profile never saw become exits, except those in `kept` (by block site - 1; may
  // be shorter).
  bool uncommon_traps = false;
  std::vector<uint8_t> kept = {};
};

// The profile of a body at the place where it is inlined. It may differ from the method's profile
// elsewhere.
struct InlinedBlocks {
  std::vector<double> counts;  // executions by block site - 1
  std::vector<bool> known;     // by block site - 1; for other sites the method's profile counts
};

class InlineeSource {
 public:
  virtual ~InlineeSource() = default;
  // Returns the description of a method, or null if its calls must stay calls. The answer stays
  // valid and the same for the source's life. Must not wait for anything that a caller may hold.
  virtual const Inlinee* find(MethodId m) = 0;
  // Returns the profile of the body at a path in the code being made, or null if there is only the
  // method's profile. As valid as find()'s answer.
  virtual const InlinedBlocks* find_blocks(const InlinePath& /*path*/) { return nullptr; }
  // Returns the observed targets of the indirect calls there. For a site that is not listed, the
  // profile of its method counts.
  virtual const std::vector<SiteTargets>* find_targets(const InlinePath& /*path*/) {
    return nullptr;
  }
};

}  // namespace uptier::jit
