#include "tools/ir_host.h"

namespace uptier::tools {

Result<std::unique_ptr<IrHost>> IrHost::add(Runtime& runtime, const jit::Module& module) {
  std::unique_ptr<IrHost> host(new IrHost(module));
  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    const jit::Function& f = module.functions[i];
    Result<MethodId> m =
        runtime.add_method(*host, {{f.cfg_hash, i}, f.name, f.signature(), nullptr});
    if (!m) return m.error();
    host->methods_.push_back(*m);
  }
  return host;
}

Status IrHost::build(MethodId m, FunctionBuilder& b) {
  uint32_t index = m.index() - methods_.front().index();
  jit::Function f = module_.functions[index];
  for (jit::Callee& c : f.callees) c.method = methods_[c.method.index()];
  for (const jit::HostCallee& c : f.host_callees) {
    if (c.address == nullptr) {
      return Error{ErrorCode::kNotFound, f.name + ": no host function \"" + c.name + "\""};
    }
  }
  BuilderAccess::adopt(b, std::move(f));
  return {};
}

}  // namespace uptier::tools
