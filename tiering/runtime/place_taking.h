// PlaceTaking: takes a place for a new method: one that was never used, or the place of a removed
// method once nothing refers to it any more (model/places.h).
//
//   Thread: the caller holds the state mutex.
#pragma once

#include <cstddef>
#include <string>

#include "tiering/base/state_lock.h"
#include "tiering/model/places.h"
#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct Engine;
class Flushes;
struct Method;
class NoteIntake;

class PlaceTaking {
 public:
  // All outlive this.
  PlaceTaking(Engine& engine, NoteIntake& note_intake, Flushes& flushes)
      : engine_(engine), note_intake_(note_intake), flushes_(flushes) {}

  struct Place {
    MethodId id;
    bool again = false;  // another method had it
  };
  // Returns a place for the method `name`. Errors: kResourceExhausted, if max_methods is reached.
  Result<Place> take_place_locked(const std::string& name) UPTIER_REQUIRES(state_lock);

 private:
  // Frees the places of removed methods, except the last `kept`.
  void free_places_locked(size_t kept) UPTIER_REQUIRES(state_lock);
  // Clears the data of the runtime and its threads about a method whose place goes to another.
  void forget_locked(Method& m) UPTIER_REQUIRES(state_lock);
  // Handles the counts in tables of call targets for the methods in these places; see
  // observe/forgotten_targets.cc.
  void forget_in_tables_locked(const Places::Set& places) UPTIER_REQUIRES(state_lock);

  Engine& engine_;
  NoteIntake& note_intake_;
  Flushes& flushes_;
};

}  // namespace uptier::tiering
