// Inlinee: what is known of a method whose body may replace calls of it.
//
// The compiler asks an InlineeSource, which knows the methods. The compiler itself knows neither where
// bodies come from nor which methods exist.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"
#include "jit/ir/inline_path.h"
#include "uptier/ids.h"

namespace uptier::jit {

// A method that an indirect call was seen to reach.
struct TargetShare {
  MethodId method;
  uint64_t count = 0;           // estimated executions
  const void* entry = nullptr;  // the address that such a call calls: the method's stub
  Signature signature;
  std::string name;
};

// What an indirect call was seen to reach, most frequent first. `total` counts the others too.
struct SiteTargets {
  SiteId site = 0;
  uint64_t total = 0;
  std::vector<TargetShare> targets;
};

// What a value probe of the body is taken to see: from `min` to `max`, one value where they are the
// same. A guess: code that is made from it has a guard.
struct SiteValues {
  SiteId site = 0;
  int64_t min = 0;
  int64_t max = 0;

  friend bool operator==(const SiteValues&, const SiteValues&) = default;
};

// What was observed of a body, estimated; a profile is advice, nothing in it needs to be true.
struct BodyProfile {
  std::vector<uint64_t> blocks = {};      // executions by block site - 1; empty: not known
  std::vector<SiteTargets> targets = {};  // of indirect calls, by rising site
  double sample = 1;  // executions of `blocks` that one observed execution stands for
};

struct Inlinee {
  Function function;  // as built
  BodyProfile profile = {};
  bool to_host = false;  // its guards leave for the host's interpreter
  // Blocks that its profile never saw become exits, except `kept`: by block site - 1, may be
  // short.
  bool uncommon_traps = false;
  std::vector<uint8_t> kept = {};
};

// What was observed of a body where it is inlined, which may be other than what its method does
// elsewhere.
struct InlinedBlocks {
  std::vector<double> counts;  // executions by block site - 1
  std::vector<bool> known;     // likewise; what is not counted there is as in the method's profile
};

class InlineeSource {
 public:
  virtual ~InlineeSource() = default;
  // Returns what is known of a method, or null where its calls must stay calls. The answer stays
  // valid and the same for the source's life. Must not block on anything that a caller may hold.
  virtual const Inlinee* find(MethodId m) = 0;
  // Returns what is known of the body that a path leads to in the code that is being made, or null
  // where nothing is but the profile of its method. As valid as find()'s.
  virtual const InlinedBlocks* find_blocks(const InlinePath& /*path*/) { return nullptr; }
  // Likewise what its indirect calls were seen to reach; a site that is not there is as in the profile
  // of its method.
  virtual const std::vector<SiteTargets>* find_targets(const InlinePath& /*path*/) {
    return nullptr;
  }
};

}  // namespace uptier::jit
