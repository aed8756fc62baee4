#include "tiering/control/copy_rules.h"

#include <algorithm>
#include <cassert>

#include "tiering/observe/inlined_bodies.h"

namespace uptier::tiering {

bool CopyRules::may_observe(const Method& m) const {
  return options_.adaptive && live_.observe_optimized && options_.tier == TierMode::kAuto &&
         options_.gap != GapMode::kExact && !always_instrumented_ && !m.info.own_code &&
         !m.shape->block_weights.empty();
}

void CopyRules::number(Method& m, Version& v) const {
  Optimizing& o = m.optimizing.own();
  assert(v.copy_number == 0 && v.copy == Copy::kInstrumented);
  v.copy_number = ++o.copies;
  v.newest_method = places_.methods_seen();
  assert(words_in(m, v) >= m.probes->optimized_plan().bytes / 8);
  v.copy_words = o.most_words = std::max(o.most_words, words_in(m, v));
}

}  // namespace uptier::tiering
