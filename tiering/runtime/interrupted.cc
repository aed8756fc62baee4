#include "uptier/interrupted.h"

#include "sampler/context.h"
#include "tiering/model/thread.h"

namespace uptier {

bool interrupted() noexcept {
  const auto* t = static_cast<const tiering::AttachedThread*>(sampler::current_context()->owner);
  return t != nullptr && t->stop.due();
}

}  // namespace uptier
