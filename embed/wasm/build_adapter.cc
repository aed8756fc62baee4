#include "embed/wasm/build_adapter.h"

#include <cstddef>

#include "embed/wasm/helpers.h"
#include "embed/wasm/vmctx.h"

namespace uptier::wasm {
namespace {

// Returns the value's bits as an i64.
Value word_of(FunctionBuilder& b, Type t, Value v) {
  if (t == Type::kF32) v = b.convert(Opcode::kBitcast, Type::kI32, v);
  if (!is_wide(t)) return b.convert(Opcode::kExtendU, Type::kI64, v);
  return t == Type::kF64 ? b.convert(Opcode::kBitcast, Type::kI64, v) : v;
}

}  // namespace

void build_adapter(const FuncType& type, FunctionBuilder& b) {
  Value context = b.param(0);
  Value words =
      b.load(Opcode::kLoad, Type::kRef,
             {.base = context, .offset = offsetof(HostContext, words), .flags = kMemInvariant});
  for (uint32_t i = 0; i < type.params.size(); ++i) {
    b.store(Opcode::kStore, word_of(b, type.params[i], b.param(i + 1)),
            {.base = words, .offset = i * 8});
  }
  Value args[] = {context};
  b.call_host(call_host_helper(), args, kCallMayTrap);
  if (type.results.empty()) return b.ret();
  b.ret(b.load(Opcode::kLoad, type.results[0], {.base = words}));
}

}  // namespace uptier::wasm
