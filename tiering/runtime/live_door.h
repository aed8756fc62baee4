// LiveDoor: the socket of a runtime (Options::listen), and what is told there.
//
//   Thread: the one that creates or destroys the runtime. In the child of a fork: none.
#pragma once

#include <memory>

#include "tiering/runtime/live_maker.h"

namespace uptier::tiering {

class Door;

class LiveDoor {
 public:
  // Opens the socket. If that fails, it logs why.
  explicit LiveDoor(const Engine& engine);
  ~LiveDoor();

 private:
  const LiveMaker live_;
  std::unique_ptr<Door> door_;
};

}  // namespace uptier::tiering
