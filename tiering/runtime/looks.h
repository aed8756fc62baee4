// Looks: which threads look at methods that they do not run, for LookingAround; and how the relay of code
// wakes the worker.
//
//   Thread: any, without the state mutex; wake_worker() also with it.
#pragma once

#include "tiering/model/places.h"
#include "tiering/serve/code_compaction.h"

namespace uptier::tiering {

struct Engine;

class Looks final : public Relay::Service {
 public:
  // `engine` outlives this.
  explicit Looks(Engine& engine) : engine_(engine) {}

  void begin_look(Places::Look& look) override;
  void end_look(Places::Look& look) override;
  void wake_worker() noexcept override;

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
