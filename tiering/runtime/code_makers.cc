#include "tiering/runtime/code_makers.h"

#include "tiering/runtime/engine.h"
#include "tiering/runtime/worker_wake.h"

namespace uptier::tiering {

CodeMakers::CodeMakers(Engine& engine)
    : installer(engine),
      compilations(engine, installer),
      warm_start(engine),
      first_calls(engine, installer, compilations, warm_start),
      enterable_code(engine, installer, compilations),
      host_loops(engine),
      intake(engine),
      worker(engine, compilations, first_calls, intake),
      quiescence(engine),
      waits(engine, compilations, first_calls, enterable_code, host_loops, quiescence) {
  engine.worker_wake->set_worker(worker);
}

}  // namespace uptier::tiering
