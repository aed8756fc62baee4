// A method in the forms that people read.
#include "jit/ir/print.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {

Result<std::string> RuntimeImpl::dump(MethodId id, std::string_view what) {
  Method& m = method(id.index());
  std::lock_guard compile(m.compile_mutex);
  Result<jit::Function> f = describe(m);
  if (!f) return f.error();
  if (what == "ir") return jit::to_text(*f);
  return Error{ErrorCode::kNotFound,
               "there is no dump \"" + std::string(what) + "\"; there is: ir"};
}

}  // namespace uptier::tiering
