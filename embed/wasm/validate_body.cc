#include "embed/wasm/validate_body.h"

#include <algorithm>
#include <array>

namespace uptier::wasm {
namespace {

constexpr Type kI32 = Type::kI32;
constexpr Type kI64 = Type::kI64;
constexpr Type kF32 = Type::kF32;
constexpr Type kF64 = Type::kF64;

constexpr uint32_t kMaxLocals = 50000;

// An instruction that takes up to two values of one type: numeric ones, and what is stored or
// loaded. No row: takes and gives 0.
struct Row {
  Type operand = Type::kNone;
  Type result = Type::kNone;
  uint8_t operands = 0;
  uint8_t align = 0;  // of an access: the log2 of its bytes
};

using Rows = std::array<Row, 256>;

constexpr void fill(Rows& rows, unsigned first, unsigned last, uint8_t operands, Type operand,
                    Type result) {
  for (unsigned code = first; code <= last; ++code) rows[code] = {operand, result, operands, 0};
}

constexpr Rows numeric_rows() {
  Rows r{};
  fill(r, 0x45, 0x45, 1, kI32, kI32);  // eqz
  fill(r, 0x46, 0x4f, 2, kI32, kI32);
  fill(r, 0x50, 0x50, 1, kI64, kI32);  // eqz
  fill(r, 0x51, 0x5a, 2, kI64, kI32);
  fill(r, 0x5b, 0x60, 2, kF32, kI32);
  fill(r, 0x61, 0x66, 2, kF64, kI32);
  fill(r, 0x67, 0x69, 1, kI32, kI32);  // clz, ctz, popcnt
  fill(r, 0x6a, 0x78, 2, kI32, kI32);
  fill(r, 0x79, 0x7b, 1, kI64, kI64);
  fill(r, 0x7c, 0x8a, 2, kI64, kI64);
  fill(r, 0x8b, 0x91, 1, kF32, kF32);  // abs ... sqrt
  fill(r, 0x92, 0x98, 2, kF32, kF32);
  fill(r, 0x99, 0x9f, 1, kF64, kF64);
  fill(r, 0xa0, 0xa6, 2, kF64, kF64);
  fill(r, 0xa7, 0xa7, 1, kI64, kI32);  // wrap
  fill(r, 0xa8, 0xa9, 1, kF32, kI32);  // trunc
  fill(r, 0xaa, 0xab, 1, kF64, kI32);
  fill(r, 0xac, 0xad, 1, kI32, kI64);  // extend
  fill(r, 0xae, 0xaf, 1, kF32, kI64);  // trunc
  fill(r, 0xb0, 0xb1, 1, kF64, kI64);
  fill(r, 0xb2, 0xb3, 1, kI32, kF32);  // convert
  fill(r, 0xb4, 0xb5, 1, kI64, kF32);
  fill(r, 0xb6, 0xb6, 1, kF64, kF32);  // demote
  fill(r, 0xb7, 0xb8, 1, kI32, kF64);  // convert
  fill(r, 0xb9, 0xba, 1, kI64, kF64);
  fill(r, 0xbb, 0xbb, 1, kF32, kF64);  // promote
  fill(r, 0xbc, 0xbc, 1, kF32, kI32);  // reinterpret
  fill(r, 0xbd, 0xbd, 1, kF64, kI64);
  fill(r, 0xbe, 0xbe, 1, kI32, kF32);
  fill(r, 0xbf, 0xbf, 1, kI64, kF64);
  fill(r, 0xc0, 0xc1, 1, kI32, kI32);  // extend8_s, extend16_s
  fill(r, 0xc2, 0xc4, 1, kI64, kI64);
  return r;
}

// Loads give, stores take.
constexpr Rows access_rows() {
  Rows r{};
  constexpr Type kLoads[] = {kI32, kI64, kF32, kF64, kI32, kI32, kI32,
                             kI32, kI64, kI64, kI64, kI64, kI64, kI64};
  constexpr uint8_t kLoadSizes[] = {2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2};
  constexpr Type kStores[] = {kI32, kI64, kF32, kF64, kI32, kI32, kI64, kI64, kI64};
  constexpr uint8_t kStoreSizes[] = {2, 3, 2, 3, 0, 1, 0, 1, 2};
  for (unsigned n = 0; n < 14; ++n) r[0x28 + n] = {Type::kNone, kLoads[n], 0, kLoadSizes[n]};
  for (unsigned n = 0; n < 9; ++n) r[0x36 + n] = {kStores[n], Type::kNone, 1, kStoreSizes[n]};
  return r;
}

int64_t sign_extend(uint64_t value, unsigned bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

constexpr Rows kNumericRows = numeric_rows();
constexpr Rows kAccessRows = access_rows();

}  // namespace

bool BodyValidator::accepts(const FunctionInfo& function) {
  begin(function);
  while (fits_ && at_ < end_ && !open_.empty()) step();
  return fits_ && open_.empty() && at_ == end_;
}

void BodyValidator::begin(const FunctionInfo& function) {
  const FuncType& type = info_.types[function.type];
  at_ = info_.bytes.data() + function.body_begin;
  end_ = info_.bytes.data() + function.body_end;
  fits_ = true;
  stack_.clear();
  open_.clear();
  open_.push_back({Op::kBlock, {{}, type.results}, 0});
  read_locals(type);
}

void BodyValidator::read_locals(const FuncType& type) {
  locals_.assign(type.params.begin(), type.params.end());
  for (uint32_t groups = u32(); fits_ && groups > 0; --groups) {
    uint32_t count = u32();
    Type t = value_type(byte());
    want(t != Type::kNone && count <= kMaxLocals && locals_.size() + count <= kMaxLocals);
    if (fits_) locals_.insert(locals_.end(), count, t);
  }
}

void BodyValidator::step() {
  uint8_t code = byte();
  if (code >= 0x45) return code <= 0xc4 ? plain(code) : prefixed_or_wrong(code);
  auto op = static_cast<Op>(code);
  if (is_memory_access(op)) return access(code);
  switch (op) {
    case Op::kLocalGet:
    case Op::kLocalSet:
    case Op::kLocalTee:
    case Op::kGlobalGet:
    case Op::kGlobalSet: return variable(op);
    case Op::kI32Const:
    case Op::kI64Const:
    case Op::kF32Const:
    case Op::kF64Const: return constant(op);
    case Op::kCall:
    case Op::kCallIndirect: return call(op);
    case Op::kMemorySize:
    case Op::kMemoryGrow: return memory(op);
    case Op::kDrop: pop(Type::kNone); return;
    case Op::kSelect: return select();
    case Op::kNop: return;
    default: return control(op);
  }
}

void BodyValidator::plain(uint8_t code) {
  const Row& row = kNumericRows[code];
  pop(row.operand);
  if (row.operands == 2) pop(row.operand);
  push(row.result);
}

void BodyValidator::access(uint8_t code) {
  const Row& row = kAccessRows[code];
  want(info_.memory.has_value() && u32() <= row.align);
  u32();
  if (row.operands != 0) pop(row.operand);
  pop(kI32);
  if (row.operands == 0) push(row.result);
}

void BodyValidator::variable(Op op) {
  uint32_t index = u32();
  bool global = op == Op::kGlobalGet || op == Op::kGlobalSet;
  want(index < (global ? info_.globals.size() : locals_.size()));
  if (!fits_) return;
  Type t = global ? info_.globals[index].type.type : locals_[index];
  if (op == Op::kGlobalSet) want(info_.globals[index].type.is_mutable);
  if (op != Op::kLocalGet && op != Op::kGlobalGet) pop(t);
  if (op != Op::kLocalSet && op != Op::kGlobalSet) push(t);
}

void BodyValidator::constant(Op op) {
  switch (op) {
    case Op::kI32Const: signed_number(32); return push(kI32);
    case Op::kI64Const: signed_number(64); return push(kI64);
    case Op::kF32Const: skip(4); return push(kF32);
    default: skip(8); return push(kF64);
  }
}

void BodyValidator::call(Op op) {
  uint32_t index = u32();
  bool direct = op == Op::kCall;
  want(index < (direct ? info_.functions.size() : info_.types.size()));
  if (!direct) want(info_.table.has_value() && byte() == 0);
  if (!fits_) return;
  const FuncType& type = direct ? info_.type_of(index) : info_.types[index];
  if (!direct) pop(kI32);
  pop_all(type.params);
  push_all(type.results);
}

void BodyValidator::memory(Op op) {
  want(info_.memory.has_value() && byte() == 0);
  if (op == Op::kMemoryGrow) pop(kI32);
  push(kI32);
}

// Saturating conversions, memory.copy and memory.fill; the others are left to the library.
void BodyValidator::prefixed_or_wrong(uint8_t code) {
  want(code == 0xfc);
  uint32_t number = u32();
  if (number < 8) {
    constexpr Type kFrom[] = {kF32, kF32, kF64, kF64};
    pop(kFrom[number % 4]);
    return push(number < 4 ? kI32 : kI64);
  }
  auto op = static_cast<Op>(0xfc00 | number);
  want(number < 256 && (op == Op::kMemoryCopy || op == Op::kMemoryFill));
  want(info_.memory.has_value() && byte() == 0);
  if (op == Op::kMemoryCopy) want(byte() == 0);
  pop_all({{kI32, kI32, kI32}});
}

void BodyValidator::select() {
  pop(kI32);
  Type a = pop(Type::kNone);
  Type b = pop(a);
  push(a == Type::kNone ? b : a);
}

// ---- Control ------------------------------------------------------------------------------------

void BodyValidator::control(Op op) {
  switch (op) {
    case Op::kIf: pop(kI32); [[fallthrough]];
    case Op::kBlock:
    case Op::kLoop: return open(op);
    case Op::kElse: return otherwise();
    case Op::kEnd: return close();
    case Op::kBr: pop_all(label_types(u32())); return end_path();
    case Op::kBrIf: {
      auto types = label_types(u32());
      pop(kI32);
      pop_all(types);
      return push_all(types);
    }
    case Op::kBrTable: return branch_table();
    case Op::kReturn: pop_all(open_.front().type.results); return end_path();
    case Op::kUnreachable: return end_path();
    default: return want(false);
  }
}

void BodyValidator::open(Op op) {
  BlockType type = block_type();
  pop_all(type.params);
  open_.push_back({op, type, stack_.size()});
  push_all(type.params);
}

void BodyValidator::otherwise() {
  Open& o = open_.back();
  want(o.op == Op::kIf);
  pop_all(o.type.results);
  want(stack_.size() == o.height);
  o.op = Op::kElse;
  o.ended = false;
  push_all(o.type.params);
}

void BodyValidator::close() {
  Open o = open_.back();
  pop_all(o.type.results);
  want(stack_.size() == o.height);
  // Without an else, what an if takes is what it gives.
  if (o.op == Op::kIf) want(std::ranges::equal(o.type.params, o.type.results));
  open_.pop_back();
  push_all(o.type.results);
}

void BodyValidator::end_path() {
  Open& o = open_.back();
  stack_.resize(o.height);
  o.ended = true;
}

// All targets take the same types, as before reference types.
void BodyValidator::branch_table() {
  pop(kI32);
  uint32_t count = u32();
  want(count < static_cast<size_t>(end_ - at_));
  if (!fits_) return;
  auto types = label_types(u32());
  for (; fits_ && count > 0; --count) want(std::ranges::equal(label_types(u32()), types));
  pop_all(types);
  end_path();
}

// What a branch passes to the block at a depth.
std::span<const Type> BodyValidator::label_types(uint32_t depth) {
  want(depth < open_.size());
  if (!fits_) return {};
  const Open& o = open_[open_.size() - 1 - depth];
  return o.op == Op::kLoop ? o.type.params : o.type.results;
}

Type BodyValidator::pop(Type wanted) {
  const Open& o = open_.back();
  if (stack_.size() == o.height) {
    want(o.ended);
    return wanted;
  }
  Type found = stack_.back();
  stack_.pop_back();
  want(found == wanted || wanted == Type::kNone || found == Type::kNone);
  return found;
}

// ---- Numbers ------------------------------------------------------------------------------------

uint8_t BodyValidator::byte() {
  if (at_ < end_) return *at_++;
  fits_ = false;
  return 0;
}

void BodyValidator::skip(uint32_t bytes) {
  want(bytes <= static_cast<size_t>(end_ - at_));
  if (fits_) at_ += bytes;
}

uint32_t BodyValidator::u32() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    uint8_t b = byte();
    value |= uint64_t{b & 0x7fu} << shift;
    if ((b & 0x80) == 0) break;
    want(shift < 28);
  }
  want(value <= UINT32_MAX);
  return static_cast<uint32_t>(value);
}

// A number of so many bits: bits beyond them repeat its sign.
int64_t BodyValidator::signed_number(unsigned bits) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t b = 0x80;
  for (; (b & 0x80) != 0; shift += 7) {
    want(shift < bits);
    if (!fits_) return 0;
    b = byte();
    value |= uint64_t{b & 0x7fu} << shift;
  }
  if (shift >= 64) {
    want(b == 0 || b == 0x7f);  // the tenth byte holds the sign alone
    return static_cast<int64_t>(value);
  }
  int64_t wide = sign_extend(value, shift);
  want(wide == sign_extend(value, std::min(bits, shift)));
  return wide;
}

BlockType BodyValidator::block_type() {
  static constexpr Type kSingle[] = {kI32, kI64, kF32, kF64};
  int64_t code = signed_number(33);
  if (code >= 0) {
    want(static_cast<size_t>(code) < info_.types.size());
    if (!fits_) return {};
    const FuncType& type = info_.types[static_cast<size_t>(code)];
    return {type.params, type.results};
  }
  if (code == -0x40) return {};
  Type t = code >= -4 ? value_type(static_cast<uint8_t>(code & 0x7f)) : Type::kNone;
  want(t != Type::kNone);
  if (!fits_) return {};
  return {{}, {&kSingle[static_cast<size_t>(t) - static_cast<size_t>(kI32)], 1}};
}

}  // namespace uptier::wasm
