#include "embed/wasm/build_function.h"

#include <atomic>
#include <utility>

namespace uptier::wasm {
namespace {

// Room that most functions never exceed.
constexpr size_t kFirstOperands = 32;
constexpr size_t kFirstFrames = 16;

}  // namespace

Signature compiled_signature(const FuncType& type) {
  Signature s;
  s.params.reserve(1 + type.params.size());
  s.params.push_back(Type::kRef);
  for (Type t : type.params) s.params.push_back(t);
  if (!type.results.empty()) s.result = type.results[0];
  return s;
}

Status build_function(const BuildContext& context, uint32_t function, FunctionBuilder& b) {
  return FunctionTranslator(context, function, b).run();
}

FunctionTranslator::FunctionTranslator(const BuildContext& context, uint32_t function,
                                       FunctionBuilder& b)
    : context_(context),
      info_(context.info),
      index_(function),
      function_(context.info.functions[function]),
      type_(context.info.type_of(function)),
      b_(b),
      reader_(context.info, function_),
      facts_(function_.facts),
      logs_(context.logs) {}

Status FunctionTranslator::run() {
  stack_.reserve(kFirstOperands);
  frames_.reserve(kFirstFrames);
  ctx_ = b_.param(0);
  cover();
  b_.set_location(function_.body_begin);
  declare_locals();
  if (facts_.accesses_memory && is_guarded(context_.bounds)) {
    memory_base_ = load_context(Type::kRef, offsetof(VmContext, memory_base));
  }
  frames_.push_back({Op::kBlock, {{}, type_.results}, 0, {}, {}, {}, {}, 0});
  while (!reader_.done() && !refused_ && failed_.ok() && !frames_.empty()) step();
  if (!failed_) return failed_;
  const bool whole = reader_.done() && !reader_.bad() && !refused_ && frames_.empty();
  if (whole) return {};
  return Error{ErrorCode::kCorruptInput, "the body of " + info_.name_of(index_) +
                                             " cannot be decoded as it was when it was " +
                                             "validated, at offset " + std::to_string(at_) +
                                             ": its bytes have changed since"};
}

// Continues in another block.
void FunctionTranslator::begin(Block b) {
  b_.switch_to(b);
  cover();
}

// Notes that the block runs, unless that is known. A body has a byte for each of its blocks: an
// instruction that makes some has as many, with its end. The store has no location, so no line has it.
void FunctionTranslator::cover() {
  if (!covers()) return;
  const uint32_t block = begun_++;
  if (block >= function_.body_end - function_.body_begin) return refuse();
  uint8_t* bytes = context_.covered.data() + function_.body_begin;
  // Relaxed: code that runs meanwhile may set it, and setting it again does no harm.
  if (std::atomic_ref<uint8_t>(bytes[block]).load(std::memory_order_relaxed) != 0) return;
  b_.set_location(0);
  b_.store(Opcode::kStore8, b_.i32(1),
           {.base = b_.ref(bytes), .offset = block, .flags = kInCovered});
  b_.set_location(at_);
}

// Locals that are not parameters start as zero, as Variables do.
void FunctionTranslator::declare_locals() {
  for (uint32_t i = 0; i < type_.params.size(); ++i) {
    locals_.push_back(b_.declare(type_.params[i]));
    b_.def(locals_.back(), b_.param(i + 1));
  }
  for (uint32_t groups = reader_.u32(); groups > 0 && !reader_.bad(); --groups) {
    const LocalGroup group = reader_.local_group();
    if (reader_.bad()) return;
    for (uint32_t i = 0; i < group.count; ++i) locals_.push_back(b_.declare(group.type));
  }
}

void FunctionTranslator::step() {
  at_ = reader_.offset();
  b_.set_location(at_);
  if (!logs_.empty()) log_here();
  Op op = reader_.op();
  if (live()) {
    translate(op);
  } else {
    step_dead(op);
  }
}

// Logs the lines that were requested here. Dead code has none.
void FunctionTranslator::log_here() {
  for (; !logs_.empty() && logs_.front().at <= at_; logs_ = logs_.subspan(1)) {
    const LogPlace& place = logs_.front();
    if (!live()) continue;
    std::vector<Value> values;
    for (const LogPlace::Argument& a : place.arguments) {
      const Value v = b_.use(locals_[a.local]);
      const bool extends = a.is_unsigned && b_.type_of(v) == Type::kI32;
      values.push_back(extends ? b_.convert(Opcode::kExtendU, Type::kI64, v) : v);
    }
    b_.log(place.format, values);
  }
}

// Follows the nesting of dead code up to the place where some branch arrives.
void FunctionTranslator::step_dead(Op op) {
  switch (op) {
    case Op::kBlock:
    case Op::kLoop:
    case Op::kIf: ++dead_depth_; break;
    case Op::kElse:
      if (dead_depth_ == 0) on_else();
      return;
    case Op::kEnd:
      if (dead_depth_ == 0) return on_end();
      --dead_depth_;
      return;
    default: break;
  }
  reader_.skip(immediates_of(op));
}

// The most frequent first: locals, then control.
void FunctionTranslator::translate(Op op) {
  if (is_between(op, Op::kDrop, Op::kGlobalSet)) return translate_plain(op);
  if (op <= Op::kCallIndirect) return translate_control(op);
  if (is_between(op, Op::kFirstNumeric, Op::kLastNumeric)) return numeric(op);
  if (is_between(op, Op::kFirstLoad, Op::kLastLoad)) return on_load(op);
  if (is_between(op, Op::kFirstStore, Op::kLastStore)) return on_store(op);
  if (is_between(op, Op::kFirstSaturating, Op::kLastSaturating)) return saturating(op);
  if (is_between(op, Op::kMemoryInit, Op::kTableCopy)) return on_helper(op);
  translate_plain(op);
}

void FunctionTranslator::translate_control(Op op) {
  uint32_t at = reader_.offset() - 1;
  switch (op) {
    case Op::kUnreachable: return b_.trap(TrapCode::kUnreachable);
    case Op::kNop: return;
    case Op::kBlock: return on_block(op);
    case Op::kLoop: return on_loop(at);
    case Op::kIf: return on_if(at);
    case Op::kElse: return on_else();
    case Op::kEnd: return on_end();
    case Op::kBr: return on_br(reader_.u32());
    case Op::kBrIf: return on_br_if(reader_.u32());
    case Op::kBrTable: return on_br_table();
    case Op::kReturn: return on_return();
    case Op::kCall: return on_call(reader_.u32());
    case Op::kCallIndirect: return on_call_indirect();
    default: return refuse();
  }
}

void FunctionTranslator::translate_plain(Op op) {
  switch (op) {
    case Op::kDrop: stack_.pop_back(); return;
    case Op::kSelectTyped: reader_.skip(immediates_of(op)); [[fallthrough]];
    case Op::kSelect: return on_select();
    case Op::kLocalGet: return push(b_.use(locals_[reader_.u32()]));
    case Op::kLocalSet: return b_.def(locals_[reader_.u32()], pop());
    case Op::kLocalTee: return b_.def(locals_[reader_.u32()], settle(stack_.back()));
    case Op::kGlobalGet: return on_global_get(reader_.u32());
    case Op::kGlobalSet: return on_global_set(reader_.u32());
    case Op::kMemorySize: return on_memory_size();
    case Op::kMemoryGrow: return on_helper(op);
    case Op::kI32Const: return stack_.push_back({b_.i32(reader_.s32()), false, true});
    case Op::kI64Const: return push(b_.i64(reader_.s64()));
    case Op::kF32Const: return push(b_.constant(Type::kF32, reader_.fixed32()));
    case Op::kF64Const: return push(b_.constant(Type::kF64, reader_.fixed64()));
    default: return refuse();
  }
}

Value FunctionTranslator::settle(Operand& operand) {
  if (operand.is_eqz) operand = {b_.unary(Opcode::kEqz, operand.value), false};
  return operand.value;
}

Value FunctionTranslator::pop() {
  Value v = settle(stack_.back());
  stack_.pop_back();
  return v;
}

std::vector<Value> FunctionTranslator::pop_many(size_t count) {
  std::vector<Value> values;
  values.reserve(count);
  for (size_t i = stack_.size() - count; i < stack_.size(); ++i)
    values.push_back(settle(stack_[i]));
  stack_.resize(stack_.size() - count);
  return values;
}

FunctionTranslator::Condition FunctionTranslator::pop_condition() {
  Operand o = stack_.back();
  stack_.pop_back();
  return {o.value, o.is_eqz};
}

}  // namespace uptier::wasm
