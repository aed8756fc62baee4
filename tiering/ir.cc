// A method's IR, for people.
#include "jit/ir/print.h"
#include "profile/wall.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {

Result<std::string> RuntimeImpl::ir(MethodId id) try {
  if (forked()) return forked_error();
  LookingAround looking(*this);
  if (!is_method(id)) return Error{ErrorCode::kInvalidArgument, "there is no such method"};
  Method& m = method(id.index());
  std::lock_guard compile(m.compile_mutex);
  if (!hosts_.may_ask(m)) return Error{ErrorCode::kInvalidArgument, "the method has been removed"};
  Result<jit::Function> f = compiler_->describe(m, MethodCompiler::Observed::kYes);
  if (!f) return f.error();
  return jit::to_text(*f);
} catch (const std::exception&) { return out_of_memory("ir"); }

}  // namespace uptier::tiering
