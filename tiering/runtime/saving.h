// Saving: saves the profile of this process in its file, on request and at the end; or passes it on.
//
// Sources of data are asked before the state mutex is taken, since they may read the runtime, and
// released after it.
//
//   Thread: any; functions with _locked: with the state mutex, which the others take.
#pragma once

#include <functional>
#include <span>

#include "tiering/base/state_lock.h"
#include "tiering/runtime/data_sources.h"
#include "uptier/gather.h"
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
        timeline_maker_(timeline_maker),
        sources_(engine) {}

  // See uptier/runtime.h.
  Status save_profile();
  Result<GatherReport> gather(const std::function<Status(std::span<const Piece>)>& take);
  // The runtime ends: saves, and logs an error if that fails, because there is no caller to return
  // it to. All threads have been flushed.
  void save_at_end();

  DataSources& sources() { return sources_; }
  const DataSources& sources() const { return sources_; }

 private:
  Status save_profile_locked(const profile::Gathered& data) UPTIER_REQUIRES(state_lock);
  void flush_caller_locked() UPTIER_REQUIRES(state_lock);

  Engine& engine_;
  NoteIntake& note_intake_;
  Flushes& flushes_;
  TimelineMaker& timeline_maker_;
  DataSources sources_;
};

}  // namespace uptier::tiering
