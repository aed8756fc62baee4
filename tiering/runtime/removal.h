// Removal: removes methods: from the table at once, their code when nothing runs it any more.
//
//   Thread: any, without the state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "tiering/base/state_lock.h"
#include "uptier/ids.h"

namespace uptier::tiering {

struct Engine;
class Flushes;
struct Method;
class NoteIntake;

enum class HostUse : uint8_t;

class Removal {
 public:
  // All outlive this.
  Removal(Engine& engine, NoteIntake& note_intake, Flushes& flushes)
      : engine_(engine), note_intake_(note_intake), flushes_(flushes) {}

  // See Runtime::remove_methods and retire_methods.
  void remove_methods(std::span<const MethodId> methods);
  void retire_methods(std::span<const MethodId> methods);

 private:
  // `after`: how long the hosts may still be asked.
  void take_out(std::span<const MethodId> all, HostUse after);
  // Returns the methods that were in service and, if the hosts may be destroyed now, the retired
  // ones. They are stored in `room`, which is as long as `all`.
  std::span<const MethodId> refuse_calls(std::span<const MethodId> all, HostUse after,
                                         std::span<MethodId> room);
  // Hosts that must not be asked any more may be destroyed soon, so waits for compilations of their
  // methods. Compilations of other methods continue.
  void await_compilations(std::span<const MethodId> ids);
  void retire_code(std::span<const MethodId> ids, HostUse after);
  // Nothing leads to the method any more, except the references to it; see model/places.h.
  void take_out_locked(Method& m, HostUse after) UPTIER_REQUIRES(state_lock);

  Engine& engine_;
  NoteIntake& note_intake_;
  Flushes& flushes_;
};

}  // namespace uptier::tiering
