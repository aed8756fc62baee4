// Removal: methods go: out of the table at once, their code when nothing runs it any more.
//
//   Thread: any, without the state mutex.
#pragma once

#include <cstdint>
#include <span>

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
  // `after`: until when the hosts may be asked.
  void take_out(std::span<const MethodId> all, HostUse after);
  // Returns those that were in service, and if the hosts may die now, those that were retired. They are
  // in `room`, which is as long as `all`.
  __attribute__((noinline)) std::span<const MethodId> refuse_calls(std::span<const MethodId> all,
                                                                   HostUse after,
                                                                   std::span<MethodId> room);
  // A host that is not to be asked any more may die soon. What is compiled of others is compiled still.
  __attribute__((noinline)) void await_compilations(std::span<const MethodId> ids);
  __attribute__((noinline)) void retire_code(std::span<const MethodId> ids, HostUse after);
  // Nothing leads to the method any more but what refers to it; see model/places.h.
  void take_out_locked(Method& m, HostUse after);

  Engine& engine_;
  NoteIntake& note_intake_;
  Flushes& flushes_;
};

}  // namespace uptier::tiering
