// A method's IR, for people.
#include "jit/ir/print.h"
#include "profile/base/wall.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

Result<std::string> RuntimeImpl::ir(MethodId id) try {
  if (forked()) return forked_error();
  if (Status s = events_.check_change("ir"); !s) return s.error();
  const Delivery delivery(*this);
  LookingAround looking(*this);
  if (!is_method(id)) return Error{ErrorCode::kInvalidArgument, "there is no such method"};
  Method& m = method(id.index());
  jit::StandardFloats floats;
  CompileTurn turn(turns_, m);
  if (!turn) {
    return Error{ErrorCode::kInvalidArgument,
                 m.info.name + ": its `build`, or one that waits for it, asks for its IR"};
  }
  if (!hosts_.may_ask(m)) return Error{ErrorCode::kInvalidArgument, "the method has been removed"};
  Result<jit::Function> f = compiler_->describer().describe(m, Describer::Observed::kYes);
  if (!f) return f.error();
  return jit::to_text(*f);
} catch (const std::exception&) { return out_of_memory("ir"); }

}  // namespace uptier::tiering
