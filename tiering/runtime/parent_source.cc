#include "tiering/runtime/parent_source.h"

#include <exception>
#include <mutex>

#include "profile/data/text.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/runtime/engine.h"
#include "tiering/saved/saved_profile.h"

namespace uptier::tiering {

void ParentSource::gather(GatherList& list) noexcept try {
  std::lock_guard lock(engine_.state_mutex);
  for (const auto& [hash, parent] : engine_.saved->parents()) {
    list.source_id({}, profile::hex(hash), {}, profile::hex(parent));
  }
} catch (const std::exception&) { list.fail("memory ran out"); }

}  // namespace uptier::tiering
