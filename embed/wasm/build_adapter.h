// build_adapter.h: the method through which compiled code calls host functions of one type.
//
// It has the signature of a compiled function of that type, so a reference to a host function is an
// ordinary FuncRef whose context is the HostContext. It writes the arguments to the context's
// words, one each and zero-extended, and calls uptier_wasm_call_host.
#pragma once

#include "embed/wasm/types.h"
#include "uptier/builder.h"

namespace uptier::wasm {

void build_adapter(const FuncType& type, FunctionBuilder& b);

}  // namespace uptier::wasm
