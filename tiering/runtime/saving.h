// Saving: saves the profile of this process in its file, on request and at the end.
//
//   Thread: any; functions with _locked: with the state mutex, which the others take.
#pragma once

#include "tiering/base/state_lock.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct Engine;
class Flushes;
class NoteIntake;
class TimelineMaker;

class Saving {
 public:
  // All outlive this.
  Saving(Engine& engine, NoteIntake& note_intake, Flushes& flushes, TimelineMaker& timeline_maker)
      : engine_(engine),
        note_intake_(note_intake),
        flushes_(flushes),
        timeline_maker_(timeline_maker) {}

  // See uptier/runtime.h.
  Status save_profile();
  // The runtime ends: saves, and logs an error if that fails, because there is no caller to return
  // it to.
  void save_at_end_locked() UPTIER_REQUIRES(state_lock);

 private:
  Status save_profile_locked() UPTIER_REQUIRES(state_lock);

  Engine& engine_;
  NoteIntake& note_intake_;
  Flushes& flushes_;
  TimelineMaker& timeline_maker_;
};

}  // namespace uptier::tiering
