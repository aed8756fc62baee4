// Looks: keeps track of threads that look at methods they do not run (LookingAround), and wakes the
// worker for code compaction.
//
//   Thread: any, without the state mutex; wake_worker(): also with it.
#pragma once

#include "tiering/base/state_lock.h"
#include "tiering/model/places.h"
#include "tiering/serve/code_compaction.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;

class Looks final : public Relay::Service {
 public:
  // `engine` outlives this.
  explicit Looks(Engine& engine) : engine_(engine) {}

  void begin_look(Places::Look& look) override;
  void end_look(Places::Look& look) override;
  void wake_worker() noexcept override;
  // A trap has dropped the calling thread's frames, and with them all of its looks except the first
  // `depth`. Cost: a load if it has dropped none.
  void drop_to(AttachedThread& t, uint32_t depth) noexcept;

 private:
  void end_look_locked(Places::Look& look) noexcept UPTIER_REQUIRES(state_lock);

  Engine& engine_;
};

}  // namespace uptier::tiering
