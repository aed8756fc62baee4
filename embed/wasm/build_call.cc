// Calls of FunctionTranslator: own functions, imports, the table, and helpers.
#include "embed/wasm/build_function.h"
#include "embed/wasm/helpers.h"

namespace uptier::wasm {

// Pushes what a call left: its result, then the further ones, which lie where the callee's context
// says. Nothing may come between the call and this.
void FunctionTranslator::push_results(const FuncType& type, Value first, Value callee_context) {
  if (type.results.empty()) return;
  push(first);
  if (type.results.size() == 1) return;
  Value results = b_.load(
      Opcode::kLoad, Type::kRef,
      {.base = callee_context, .offset = offsetof(ContextHeader, results), .flags = kMemInvariant});
  for (uint32_t i = 1; i < type.results.size(); ++i) {
    push(b_.load(Opcode::kLoad, type.results[i], {.base = results, .offset = (i - 1) * 8}));
  }
}

// An own function is called as a method, with the same context. An import goes through the record
// that linking filled in.
void FunctionTranslator::on_call(uint32_t function) {
  const FuncType& type = info_.type_of(function);
  std::vector<Value> args = pop_many(type.params.size());
  Signature signature = compiled_signature(type);
  if (function >= info_.imported_functions) {
    args.insert(args.begin(), ctx_);
    MethodId method = context_.methods[function - info_.imported_functions];
    Value first = b_.call(method, signature, args, info_.functions[function].name);
    return push_results(type, first, ctx_);
  }
  uint32_t record = context_.layout.import(function);
  Value entry = load_context(Type::kRef, record + offsetof(FuncRef, entry));
  Value callee_context = load_context(Type::kRef, record + offsetof(FuncRef, context));
  args.insert(args.begin(), callee_context);
  push_results(type, b_.call_indirect(entry, signature, args), callee_context);
}

// The checks come in the order of the specification: the index, the null reference, the type.
// The index is below the table's size when it is shifted, so the shift loses no bits.
void FunctionTranslator::on_call_indirect() {
  uint32_t type_index = reader_.u32();
  reader_.u32();  // table 0
  const FuncType& type = info_.types[type_index];
  Value index = pop();
  std::vector<Value> args = pop_many(type.params.size());
  Value size = load_context(Type::kI32, offsetof(VmContext, table_size));
  b_.trap_if(b_.binary(Opcode::kGeU, index, size), TrapCode::kUndefinedElement);
  Value table = load_context(Type::kRef, offsetof(VmContext, table_base));
  Value place = b_.binary(Opcode::kShl, index, b_.i32(kFuncRefShift));
  auto field = [&](Type t, uint32_t offset) {
    return b_.load(Opcode::kLoad, t, {.base = table, .index = place, .offset = offset});
  };
  Value entry = field(Type::kRef, offsetof(FuncRef, entry));
  b_.trap_if(b_.unary(Opcode::kEqz, entry), TrapCode::kUninitializedElement);
  Value actual = field(Type::kI32, offsetof(FuncRef, type_id));
  Value expected = b_.i32(static_cast<int32_t>(context_.type_ids[type_index]));
  b_.trap_if(b_.binary(Opcode::kNe, actual, expected), TrapCode::kIndirectTypeMismatch);
  Value callee_context = field(Type::kRef, offsetof(FuncRef, context));
  args.insert(args.begin(), callee_context);
  Value first = b_.call_indirect(entry, compiled_signature(type), args);
  push_results(type, first, callee_context);
}

void FunctionTranslator::on_helper(Op op) {
  Helper helper = helper_for(op);
  if (helper.function.address == nullptr) return refuse();
  std::vector<Value> args{ctx_};
  if (helper.takes_segment) args.push_back(b_.i32(static_cast<int32_t>(reader_.u32())));
  bool has_second = op == Op::kMemoryInit || op == Op::kTableInit || op == Op::kMemoryCopy ||
                    op == Op::kTableCopy;
  if (has_second) reader_.u32();             // memory or table 0
  if (!helper.takes_segment) reader_.u32();  // memory or table 0
  if (helper.bulk != 0) args.push_back(stable_base());
  bool observed = helper.bulk != 0 && !stack_.back().is_constant;
  size_t operands = helper.function.signature.params.size() - args.size();
  for (Value v : pop_many(operands)) args.push_back(v);
  if (observed) b_.probe(ProbeKind::kValue, args.back());
  bool faults = is_guarded(context_.bounds);  // what is out of range
  Value result = b_.call_host(helper.function, args, faults ? helper.bulk : 0);
  if (helper.trap != TrapCode::kNone) {
    b_.trap_if(result, helper.trap);
  } else if (helper.function.signature.result != Type::kNone) {
    push(result);
  }
}

}  // namespace uptier::wasm
