#include "tiering/runtime/parent_source.h"

#include <exception>
#include <mutex>

#include "profile/data/text.h"
#include "tiering/base/state_lock.h"
#include "tiering/runtime/engine.h"
#include "tiering/saved/saved_profile.h"

namespace uptier::tiering {

void ParentSource::gather(GatherList& list) noexcept try {
  HeldState lock(engine_.state_mutex);
  for (const auto& [hash, parent] : engine_.saved->parents()) {
    list.source_id({}, profile::hex(hash), {}, profile::hex(parent));
  }
} catch (const std::exception&) { list.fail("memory ran out"); }

}  // namespace uptier::tiering
