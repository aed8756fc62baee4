// Shutdown: the end of a runtime: flushes all counts, saves the profile, frees code and methods.
//
//   Thread: the one that destroys the runtime; no other thread is attached any more.
#pragma once

#include "tiering/base/state_lock.h"

namespace uptier::tiering {

class Flushes;
class Saving;
struct Engine;

class Shutdown {
 public:
  // All outlive this.
  Shutdown(Engine& engine, Flushes& flushes, Saving& saving)
      : engine_(engine), flushes_(flushes), saving_(saving) {}

  // Ends the process, with an error in the log, if other threads are still attached.
  void run();

 private:
  void die_if_in_use();
  void say_scopes() const;
  void tell_first_calls_locked() UPTIER_REQUIRES(state_lock);
  void end_records();
  void free_all();

  Engine& engine_;
  Flushes& flushes_;
  Saving& saving_;
};

}  // namespace uptier::tiering
