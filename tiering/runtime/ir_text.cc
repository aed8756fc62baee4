#include "tiering/runtime/ir_text.h"

#include "jit/code/float_state.h"
#include "jit/ir/print.h"
#include "profile/base/wall.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/model/looking_around.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/looks.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

Result<std::string> ir_text(Engine& engine, MethodId id) try {
  if (engine.forked()) return Engine::forked_error();
  LookingAround looking(*engine.looks);
  if (!engine.is_method(id)) {
    return Error{ErrorCode::kInvalidArgument, "there is no such method"};
  }
  Method& m = engine.method(id.index());
  jit::StandardFloats floats;
  CompileTurn turn(engine.turns, m);
  if (!turn) {
    return Error{ErrorCode::kInvalidArgument,
                 m.info.name + ": its IR is requested by its `build`, or by one that waits for it"};
  }
  if (!engine.hosts->may_ask(m)) {
    return Error{ErrorCode::kInvalidArgument, "the method has been removed"};
  }
  Result<jit::Function> f = engine.compiler->describer().describe(m, Describer::Observed::kYes);
  if (!f) return f.error();
  return jit::to_text(*f);
} catch (const std::exception&) { return out_of_memory("ir"); }

}  // namespace uptier::tiering
