// CodeMakers: the components that make code and install it: on demand, from the queue, or ahead of
// calls.
//
// Each is given those above it in the list.
#pragma once

#include "tiering/runtime/compilations.h"
#include "tiering/runtime/enterable_code.h"
#include "tiering/runtime/first_calls.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/host_loops.h"
#include "tiering/runtime/installer.h"
#include "tiering/runtime/note_intake.h"
#include "tiering/runtime/quiescence.h"
#include "tiering/runtime/warm_start.h"
#include "tiering/runtime/worker.h"

namespace uptier::tiering {

struct CodeMakers {
  // `engine` outlives this.
  explicit CodeMakers(Engine& engine);

  Installer installer;
  Compilations compilations;
  WarmStart warm_start;
  FirstCalls first_calls;
  EnterableCode enterable_code;
  HostLoops host_loops;
  NoteIntake intake;
  Worker worker;
  Quiescence quiescence;
  GuestWaits waits;
};

}  // namespace uptier::tiering
