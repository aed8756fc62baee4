// The builder handle of the C API: its checks, blocks, variables and constants.
#include "tiering/c_api/builder.h"

#include <algorithm>
#include <cassert>

#include "jit/frontend/op_call.h"
#include "profile/base/wall.h"

using namespace uptier;
using namespace uptier::tiering;

// ---- Checks -----------------------------------------------------------------------------------

uptier_builder::uptier_builder(uptier_runtime& r, FunctionBuilder& b) : runtime(r), builder(b) {
  for (size_t i = 0; i < b.signature().params.size(); ++i) {
    made(b.param(static_cast<unsigned>(i)));
  }
  blocks.resize(b.current().index() + 1, {.sealed = true, .begun = true});
}

bool uptier_builder::enter(uptier_builder* b, const char* what) {
  if (b == nullptr || !b->error) return false;
  b->what = what;
  return true;
}

bool uptier_builder::enter_block(uptier_builder* b, const char* what) {
  if (!enter(b, what)) return false;
  return b->builder.current().valid() || b->refuse("the block has ended and no other is current");
}

bool uptier_builder::enter_inst(uptier_builder* b, const char* what) {
  if (!enter_block(b, what)) return false;
  b->current_is_empty = false;
  return true;
}

bool uptier_builder::refuse(std::string_view why) {
  assert(what != nullptr);  // enter() has stored the name of the call
  error = Error{ErrorCode::kInvalidArgument, std::string(what) + ": " + std::string(why)};
  return false;
}

uptier_status uptier_builder::ran_out() noexcept {
  error = out_of_memory(what);
  return UPTIER_RESOURCE_EXHAUSTED;
}

uptier_status uptier_builder::status() const {
  return error ? UPTIER_OK : status_of(error.error().code);
}

bool uptier_builder::has(uptier_value v) {
  if (v.id != 0 && v.id <= value_count) return true;
  return refuse("there is no value " + std::to_string(v.id));
}

bool uptier_builder::has(uptier_block b) {
  if (b.id != 0 && b.id <= blocks.size()) return true;
  return refuse("there is no block " + std::to_string(b.id));
}

bool uptier_builder::has(uptier_variable x) {
  if (x.id != 0 && x.id <= variables.size()) return true;
  return refuse("there is no variable " + std::to_string(x.id));
}

bool uptier_builder::has_open(uptier_block b) {
  if (!has(b)) return false;
  return !blocks[b.id - 1].sealed ||
         refuse("block " + std::to_string(b.id) + " is sealed: no jump to it may be added");
}

bool uptier_builder::is_type(uptier_type t) {
  if (t != UPTIER_TYPE_NONE && t <= UPTIER_TYPE_REF) return true;
  return refuse("there is no value type " + std::to_string(t));
}

bool uptier_builder::is_op(uptier_opcode op, std::initializer_list<Shape> shapes) {
  if (op >= UPTIER_OPCODE_COUNT) return refuse("there is no operation " + std::to_string(op));
  assert(shapes.size() != 0);
  const OpcodeInfo& row = info(static_cast<Opcode>(op));
  if (std::find(shapes.begin(), shapes.end(), row.shape) != shapes.end()) return true;
  std::string cure = ", which only the library makes";
  if (const char* call = jit::call_that_makes(row.shape)) {
    bool is_switch = row.shape == Shape::kSwitch;  // `switch` is a keyword in C++
    cure = std::string(": uptier_build_") + (is_switch ? "switch" : call) + " makes it";
  }
  return refuse(std::string(row.text) + " is an operation of another shape" + cure);
}

bool uptier_builder::is_probe(uptier_probe_kind kind) {
  if (kind == 0 || kind > static_cast<uint32_t>(kLastProbeKind)) {
    return refuse("there is no probe of kind " + std::to_string(kind));
  }
  auto k = static_cast<ProbeKind>(kind);
  if (host_places(k)) return true;
  return refuse(std::string("probes of kind ") + probe_kind_name(k) +
                ": the library places these itself");
}

bool uptier_builder::address(const uptier_address& at, uint32_t allowed, Address& out) {
  if (!has(at.base) || (at.index.id != 0 && !has(at.index))) return false;
  allowed |= UPTIER_MEM_ALIAS_CLASS(kAliasClasses - 1);
  if ((at.flags & ~allowed) != 0) return refuse("a flag that the operation does not have");
  assert(from_c<Value>(at.base).valid());
  out = {from_c<Value>(at.base), from_c<Value>(at.index), at.offset,
         static_cast<uint8_t>(at.flags)};
  return true;
}

uptier_value uptier_builder::made(Value v) {
  if (v.valid()) value_count = std::max(value_count, v.index() + 1);
  return to_c<uptier_value>(v);
}

namespace {

using B = uptier_builder;

uptier_value constant_of(uptier_builder* b, const char* what, Type t, uint64_t bits) {
  if (!B::enter_inst(b, what)) return {};
  return b->made(b->builder.constant(t, bits));
}

}  // namespace

extern "C" {

uptier_status uptier_build_status(const uptier_builder* b, uptier_error* error) noexcept {
  if (b == nullptr) return bad_argument(error, "the builder is NULL");
  return b->error ? UPTIER_OK : fail(error, b->error.error());
}

// ---- Parameters, blocks, variables --------------------------------------------------------------

uptier_value uptier_build_param(uptier_builder* b, size_t index) noexcept try {
  if (!B::enter(b, __func__)) return {};
  if (index >= b->builder.signature().params.size()) {
    b->refuse("there is no parameter " + std::to_string(index));
    return {};
  }
  return b->made(b->builder.param(static_cast<unsigned>(index)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_type uptier_build_type_of(uptier_builder* b, uptier_value v) noexcept {
  if (!B::enter(b, __func__) || !b->has(v)) return UPTIER_TYPE_NONE;
  return static_cast<uptier_type>(b->builder.type_of(from_c<Value>(v)));
}

uptier_block uptier_build_create_block(uptier_builder* b) noexcept try {
  if (!B::enter(b, __func__)) return {};
  b->blocks.emplace_back();
  return to_c<uptier_block>(b->builder.create_block());
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_status uptier_build_switch_to(uptier_builder* b, uptier_block block) noexcept try {
  if (!B::enter(b, __func__) || !b->has(block)) return status_of(b);
  if (b->builder.current().valid()) {
    b->refuse("the current block has not ended");
  } else if (b->blocks[block.id - 1].begun) {
    b->refuse("block " + std::to_string(block.id) + " has been filled already");
  } else {
    b->blocks[block.id - 1].begun = true;
    b->current_is_empty = true;
    b->builder.switch_to(from_c<Block>(block));
  }
  return b->status();
} catch (const std::exception&) { return b->ran_out(); }

uptier_status uptier_build_seal(uptier_builder* b, uptier_block block) noexcept try {
  if (!B::enter(b, __func__) || !b->has_open(block)) return status_of(b);
  b->blocks[block.id - 1].sealed = true;
  b->builder.seal(from_c<Block>(block));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_block uptier_build_current(const uptier_builder* b) noexcept {
  if (b == nullptr || !b->error) return {};
  return to_c<uptier_block>(b->builder.current());
}

uptier_variable uptier_build_declare(uptier_builder* b, uptier_type type) noexcept try {
  if (!B::enter(b, __func__) || !b->is_type(type)) return {};
  b->variables.push_back(static_cast<Type>(type));
  return to_c<uptier_variable>(b->builder.declare(static_cast<Type>(type)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_status uptier_build_def(uptier_builder* b, uptier_variable x, uptier_value v) noexcept try {
  if (!B::enter_block(b, __func__) || !b->has(x) || !b->has(v)) return status_of(b);
  if (b->builder.type_of(from_c<Value>(v)) != b->variables[x.id - 1]) {
    b->refuse("the value has another type than the variable");
    return b->status();
  }
  b->builder.def(from_c<Variable>(x), from_c<Value>(v));
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_value uptier_build_use(uptier_builder* b, uptier_variable x) noexcept try {
  if (!B::enter_block(b, __func__) || !b->has(x)) return {};
  return b->made(b->builder.use(from_c<Variable>(x)));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_status uptier_build_set_location(uptier_builder* b, uint32_t location) noexcept try {
  if (!B::enter(b, __func__)) return status_of(b);
  b->builder.set_location(location);
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

uptier_file uptier_build_add_file(uptier_builder* b, const char* path) noexcept try {
  if (!B::enter(b, __func__)) return {};
  if (path == nullptr) {
    b->refuse("the path is NULL");
    return {};
  }
  const FileId file = b->builder.add_file(path);
  b->file_count = std::max(b->file_count, file.index() + 1);
  return to_c<uptier_file>(file);
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_status uptier_build_add_position(uptier_builder* b, uint32_t location, uptier_file file,
                                        uint32_t line, uint32_t column,
                                        uint32_t inlined_at) noexcept try {
  if (!B::enter(b, __func__)) return status_of(b);
  if (file.id == 0 || file.id > b->file_count) {
    b->refuse("the file is none of this builder");
    return b->status();
  }
  b->builder.add_position(location, {from_c<FileId>(file), line, column, inlined_at});
  return UPTIER_OK;
} catch (const std::exception&) { return b->ran_out(); }

// ---- Constants ----------------------------------------------------------------------------------

uptier_value uptier_build_i32(uptier_builder* b, int32_t v) noexcept try {
  return constant_of(b, __func__, Type::kI32, static_cast<uint32_t>(v));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_i64(uptier_builder* b, int64_t v) noexcept try {
  return constant_of(b, __func__, Type::kI64, static_cast<uint64_t>(v));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_f32(uptier_builder* b, float v) noexcept try {
  if (!B::enter_inst(b, __func__)) return {};
  return b->made(b->builder.f32(v));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_f64(uptier_builder* b, double v) noexcept try {
  if (!B::enter_inst(b, __func__)) return {};
  return b->made(b->builder.f64(v));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_ref(uptier_builder* b, const void* p) noexcept try {
  return constant_of(b, __func__, Type::kRef, reinterpret_cast<uintptr_t>(p));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

uptier_value uptier_build_constant(uptier_builder* b, uptier_type type, uint64_t bits) noexcept
    try {
  if (!B::enter_inst(b, __func__) || !b->is_type(type)) return {};
  if (!is_wide(static_cast<Type>(type)) && bits > UINT32_MAX) {
    b->refuse("bits above the width of the constant");
    return {};
  }
  return b->made(b->builder.constant(static_cast<Type>(type), bits));
} catch (const std::exception&) {
  b->ran_out();
  return {};
}

}  // extern "C"
