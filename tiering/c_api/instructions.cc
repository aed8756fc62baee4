// Instructions of the C API's builder: operations, calls, control, observation.
#include "tiering/c_api/builder.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

using B = uptier_builder;

bool call_flags(uptier_builder* b, uint32_t flags) {
  if ((flags & ~uint32_t{UPTIER_CALL_MAY_TRAP}) == 0) return true;
  b->refuse("a flag that the operation does not have");
  return false;
}

// Checks the arguments of a call against the number of parameters.
bool call_args(uptier_builder* b, const Signature& s, const uptier_value* args, size_t count,
               std::vector<Value>& out) {
  if (std::string wrong = wrong_count(count, s); !wrong.empty()) return b->refuse(wrong);
  return b->list(args, count, out);
}

bool signature(uptier_builder* b, const uptier_signature& s, Signature& out) {
  Result<Signature> made = signature_of(s);
  if (!made) return b->refuse(made.error().message);
  out = std::move(*made);
  return true;
}

}  // namespace

extern "C" {

// ---- Operations ---------------------------------------------------------------------------------

uptier_value uptier_build_unary(uptier_builder* b, uptier_opcode op, uptier_value a) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->is_op(op, {Shape::kUnary, Shape::kTest})) return {};
  if (!b->has(a)) return {};
  return b->made(b->builder.unary(static_cast<Opcode>(op), from_c<Value>(a)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_binary(uptier_builder* b, uptier_opcode op, uptier_value a,
                                 uptier_value c) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->is_op(op, {Shape::kBinary, Shape::kCompare})) return {};
  if (!b->has(a) || !b->has(c)) return {};
  return b->made(b->builder.binary(static_cast<Opcode>(op), from_c<Value>(a), from_c<Value>(c)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_convert(uptier_builder* b, uptier_opcode op, uptier_type to,
                                  uptier_value a) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->is_op(op, {Shape::kConvert})) return {};
  if (!b->is_type(to) || !b->has(a)) return {};
  return b->made(
      b->builder.convert(static_cast<Opcode>(op), static_cast<Type>(to), from_c<Value>(a)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_select(uptier_builder* b, uptier_value condition, uptier_value a,
                                 uptier_value c) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->has(condition) || !b->has(a) || !b->has(c)) return {};
  return b->made(b->builder.select(from_c<Value>(condition), from_c<Value>(a), from_c<Value>(c)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_status uptier_build_make_own(uptier_builder* b, const uptier_variable* variables,
                                    size_t count) noexcept try {
  std::vector<Variable> list;
  if (!B::enter_inst(b, __func__) || !b->list(variables, count, list)) return status_of(b);
  b->builder.make_own(list);
  return b->status();
} catch (const std::exception&) { return b->ran_out(); }

uptier_value uptier_build_load(uptier_builder* b, uptier_opcode op, uptier_type type,
                               uptier_address at) noexcept try {
  Address to;
  if (!B::enter_inst(b, __func__) || !b->is_op(op, {Shape::kLoad}) || !b->is_type(type)) return {};
  if (!b->address(at, UPTIER_MEM_TRAPS | UPTIER_MEM_FENCED | UPTIER_MEM_INVARIANT, to)) return {};
  return b->made(b->builder.load(static_cast<Opcode>(op), static_cast<Type>(type), to));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_status uptier_build_store(uptier_builder* b, uptier_opcode op, uptier_value v,
                                 uptier_address at) noexcept try {
  Address to;
  if (!B::enter_inst(b, __func__) || !b->is_op(op, {Shape::kStore}) || !b->has(v)) {
    return status_of(b);
  }
  if (!b->address(at, UPTIER_MEM_TRAPS | UPTIER_MEM_FENCED, to)) return b->status();
  b->builder.store(static_cast<Opcode>(op), from_c<Value>(v), to);
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

// ---- Calls --------------------------------------------------------------------------------------

uptier_value uptier_build_call(uptier_builder* b, uptier_method callee, const uptier_value* args,
                               size_t count) noexcept try {
  if (!B::enter_inst(b, __func__)) return {};
  const CMethod* m = b->runtime.methods.find(callee);
  if (m == nullptr) {
    b->refuse("method " + std::to_string(callee.id) + " is not in service");
    return {};
  }
  std::vector<Value> values;
  if (!call_args(b, m->signature(), args, count, values)) return {};
  return b->made(b->builder.call(m->id, m->signature(), values, m->name()));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_call_indirect(uptier_builder* b, uptier_value target, uptier_signature s,
                                        const uptier_value* args, size_t count,
                                        uint32_t flags) noexcept try {
  Signature type;
  std::vector<Value> values;
  if (!B::enter_inst(b, __func__) || !b->has(target) || !signature(b, s, type)) return {};
  if (!call_flags(b, flags) || !call_args(b, type, args, count, values)) return {};
  return b->made(
      b->builder.call_indirect(from_c<Value>(target), type, values, static_cast<uint8_t>(flags)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_call_host(uptier_builder* b, const char* name, uptier_code function,
                                    uptier_signature s, const uptier_value* args, size_t count,
                                    uint32_t flags) noexcept try {
  HostFunction callee{name, reinterpret_cast<const void*>(function), {}};
  std::vector<Value> values;
  if (!B::enter_inst(b, __func__) || !signature(b, s, callee.signature)) return {};
  if (name == nullptr || function == nullptr) {
    b->refuse("the name or the function is NULL");
    return {};
  }
  if (!call_flags(b, flags) || !call_args(b, callee.signature, args, count, values)) return {};
  return b->made(b->builder.call_host(callee, values, static_cast<uint8_t>(flags)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

// ---- Control ------------------------------------------------------------------------------------

uptier_status uptier_build_jump(uptier_builder* b, uptier_block to) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->has_open(to)) return status_of(b);
  b->builder.jump(from_c<Block>(to));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_branch(uptier_builder* b, uptier_value condition, uptier_block if_true,
                                  uptier_block if_false) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->has(condition) || !b->has_open(if_true) ||
      !b->has_open(if_false)) {
    return status_of(b);
  }
  b->builder.branch(from_c<Value>(condition), from_c<Block>(if_true), from_c<Block>(if_false));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_switch(uptier_builder* b, uptier_value index, const uptier_block* cases,
                                  size_t count, uptier_block otherwise) noexcept try {
  std::vector<Block> to;
  if (!B::enter_inst(b, __func__) || !b->has(index) || !b->list(cases, count, to) ||
      !b->has_open(otherwise)) {
    return status_of(b);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!b->has_open(cases[i])) return b->status();
  }
  b->builder.switch_on(from_c<Value>(index), to, from_c<Block>(otherwise));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_ret(uptier_builder* b, uptier_value v) noexcept try {
  if (!B::enter_inst(b, __func__)) return status_of(b);
  if (v.id == 0 && b->builder.signature().result == Type::kNone) {
    b->builder.ret();
  } else if (b->has(v)) {
    b->builder.ret(from_c<Value>(v));
  }
  return b->status();
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_trap(uptier_builder* b, uptier_trap code) noexcept try {
  if (!B::enter_inst(b, __func__)) return status_of(b);
  if (code == UPTIER_TRAP_NONE || code >= UPTIER_TRAP_COUNT) {
    b->refuse("there is no trap " + std::to_string(code));
    return b->status();
  }
  b->builder.trap(static_cast<TrapCode>(code));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_trap_if(uptier_builder* b, uptier_value condition,
                                   uptier_trap code) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->has(condition)) return status_of(b);
  if (code == UPTIER_TRAP_NONE || code >= UPTIER_TRAP_COUNT) {
    b->refuse("there is no trap " + std::to_string(code));
    return b->status();
  }
  b->builder.trap_if(from_c<Value>(condition), static_cast<TrapCode>(code));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

// ---- Observation and speculation ----------------------------------------------------------------

uptier_loop uptier_build_loop_header(uptier_builder* b, uint32_t pc, const uptier_variable* slots,
                                     size_t count) noexcept {
  std::vector<Variable> variables;
  if (!B::enter_block(b, __func__) || !b->list(slots, count, variables)) return {};
  if (!b->current_is_empty) {
    b->refuse("a loop header comes first in its block");
    return {};
  }
  if (b->builder.current().index() == 0) {
    b->refuse(
        "the entry block is no loop header, since nothing jumps to it: uptier_build_create_block, "
        "jump to it, and begin the loop there");
    return {};
  }
  if (b->blocks[b->builder.current().index()].sealed) {
    b->refuse("a loop header is sealed after its back edges");
    return {};
  }
  b->current_is_empty = false;
  return to_c<uptier_loop>(b->builder.loop_header(pc, variables));
}

uptier_status uptier_build_frame_state(uptier_builder* b, uint32_t pc, const uptier_value* slots,
                                       size_t count) noexcept try {
  std::vector<Value> values;
  if (!B::enter_inst(b, __func__) || !b->list(slots, count, values)) return status_of(b);
  b->builder.frame_state(pc, values);
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_guard(uptier_builder* b, uptier_value condition,
                                 uptier_guard_reason reason) noexcept try {
  if (!B::enter_inst(b, __func__) || !b->has(condition)) return status_of(b);
  if (reason >= UPTIER_GUARD_REASON_COUNT) {
    b->refuse("there is no guard reason " + std::to_string(reason));
    return b->status();
  }
  b->builder.guard(from_c<Value>(condition), static_cast<GuardReason>(reason));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_leave(uptier_builder* b, uptier_guard_reason reason) noexcept try {
  if (!B::enter_inst(b, __func__)) return status_of(b);
  if (reason >= UPTIER_GUARD_REASON_COUNT) {
    b->refuse("there is no guard reason " + std::to_string(reason));
    return b->status();
  }
  b->builder.leave(static_cast<GuardReason>(reason));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_probe(uptier_builder* b, uptier_probe_kind kind, uptier_value v,
                                 uint32_t tag, uint32_t* index) noexcept try {
  if (!B::enter_inst(b, __func__)) return status_of(b);
  if (!b->is_probe(kind)) return b->status();
  bool none = v.id == 0 && kind == UPTIER_PROBE_HIT;
  if (!none && !b->has(v)) return b->status();
  uint32_t site = b->builder.probe(static_cast<ProbeKind>(kind), from_c<Value>(v), tag);
  if (index != nullptr) *index = site;
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_value uptier_build_known_count(uptier_builder* b, uint32_t probe) noexcept try {
  if (!B::enter_inst(b, __func__)) return {};
  Value v = b->builder.known_count(probe);
  if (!v.valid()) b->refuse("there is no counter, hit or gauge " + std::to_string(probe));
  return b->made(v);
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

}  // extern "C"
