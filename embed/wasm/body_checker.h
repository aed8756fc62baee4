// body_checker.h: function bodies, validated and scanned as they are read. After the door of
// read_module.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "embed/wasm/code_reader.h"
#include "embed/wasm/module_info.h"
#include "embed/wasm/read_names.h"
#include "embed/wasm/rules.h"
#include "uptier/result.h"
#include "wabt/binary-reader-nop.h"

namespace uptier::wasm {

// Takes the reader's events of bodies, has each one validated, and writes down what `info` wants to
// know of them. Validation stops at its first error, reading goes on: a malformed module is
// malformed whatever else it is. It ends at an instruction that the engine does not serve.
//
// The library's reader and the translator's reader (code_reader.h) read the same bytes side by side. The
// library accepts some instructions silently, among them some of features that are off; the table of
// the translator's reader decides which instructions are supported.
class BodyChecker : public wabt::BinaryReaderNop {
 public:
  using Index = wabt::Index;
  using Location = wabt::Location;
  using Offset = wabt::Offset;
  using Opcode = wabt::Opcode;
  using Var = wabt::Var;
  using Ok = wabt::Result;
  using V = wabt::SharedValidator;

  // Reads all instructions, or only the sizes of bodies and their locals.
  enum class Reads : uint8_t { kAll, kDeclarations };

  // The first body that is read is function `first`, and what the reader calls offset 0 is `delta`
  // of the module.
  BodyChecker(ModuleInfo& info, Rules& rules, Reads reads, uint32_t first = 0, uint64_t delta = 0)
      : info_(info),
        rules_(rules),
        validator_(rules.validator),
        reads_(reads),
        first_(first),
        delta_(delta) {}

  // Returns the error in the bytes that were read; `read` is the reader's result.
  Status verdict(Ok read) const {
    if (malformed_) return *malformed_;
    if (invalid_) return *invalid_;
    if (stopped_) return *unsupported_;
    if (wabt::Failed(read)) return Error{ErrorCode::kCorruptInput, "the module cannot be read"};
    if (unsupported_) return *unsupported_;
    return {};
  }

  // Returns the offset at which the library could not read further, if that is the error.
  std::optional<uint64_t> stuck_at() const { return stuck_at_; }

  // Returns ", in func[3] <name>" while a body is read, or after it could not be.
  std::string where() const {
    return in_body_ ? ", in " + function_text(info_, function_) : std::string();
  }

  bool OnError(const wabt::Error& e) override {
    // The reader has words of its own for having been stopped.
    if (e.error_level == wabt::ErrorLevel::Warning || stopped_) return true;
    if (is_validation_rule(e.message)) {
      set(invalid_, ErrorCode::kInvalidInput, e.loc.offset + delta_, e.message);
    } else {
      if (!malformed_) stuck_at_ = e.loc.offset + delta_;
      set(malformed_, ErrorCode::kCorruptInput, e.loc.offset + delta_, e.message);
    }
    return true;
  }

  // ---- Function bodies -----------------------------------------------------------------------

  Ok BeginFunctionBody(Index function, Offset size) override {
    FunctionInfo& f = info_.functions[first_ + function];
    f.body_begin = static_cast<uint32_t>(offset());
    f.body_end = static_cast<uint32_t>(offset() + size);
    body_end_ = offset() + size;
    local_count_ = 0;
    locals_.clear();
    // Reading continues after an unknown type.
    if (f.type < info_.types.size()) {
      for (Type t : info_.types[f.type].params) locals_.push_back(number_type(t));
    }
    depth_ = 0;
    ended_ = false;
    in_body_ = true;
    function_ = first_ + function;
    ours_ = CodeReader(info_.bytes, offset(), body_end_);
    return validate(&V::BeginFunctionBody, here(), first_ + function);
  }
  Ok OnLocalDeclCount(Index count) override {
    if (reads_ == Reads::kAll && ours_.u32() != count) differ();
    keep_step();
    return Ok::Ok;
  }
  Ok OnLocalDecl(Index, Index count, wabt::Type type) override {
    local_count_ += count;
    if (local_count_ > kMaxLocals) {
      refuse("a function has too many locals");
    } else {
      locals_.insert(locals_.end(), count, type);
    }
    refuse_ref(type);
    if (reads_ == Reads::kAll) {
      const LocalGroup group = ours_.local_group();
      if (group.count != count || number_type(group.type) != type) differ();
      keep_step();
    }
    return validate(&V::OnLocalDecl, here(), count, type);
  }
  Ok EndFunctionBody(Index function) override {
    in_body_ = false;
    if (reads_ == Reads::kDeclarations) return Ok::Ok;
    info_.functions[first_ + function].facts = scan_.take();
    keep_step();
    if (!ended_ || offset() != body_end_) {
      set(malformed_, ErrorCode::kCorruptInput, offset(),
          "function body does not end with the end of its outermost block");
    }
    return validate(&V::EndFunctionBody, here());
  }

  Ok OnOpcode(Opcode op) override {
    if (!in_body_) return constant_opcode(op);
    opcode_at_ = ours_.offset();
    const Op ours = op_ = ours_.op();
    const Immediates immediates = immediates_of(ours);
    if (immediates == Immediates::kNotServed) return not_served(op);
    // Those below have no prefix.
    const bool same = op < wabt::Opcode::I32TruncSatF32S
                          ? offset() == opcode_at_ + 1
                          : static_cast<uint32_t>(ours) == (op.GetPrefix() << 8 | op.GetCode());
    if (!same) differ();
    keep_step();
    ours_.skip(immediates);
    if (ended_) {
      set(malformed_, ErrorCode::kCorruptInput, opcode_at_, "instruction after the function's end");
    }
    return Ok::Ok;
  }

  Ok OnBinaryExpr(Opcode op) override { return validate(&V::OnBinary, place(), op); }
  Ok OnCompareExpr(Opcode op) override { return validate(&V::OnCompare, place(), op); }
  Ok OnConvertExpr(Opcode op) override { return validate(&V::OnConvert, place(), op); }
  Ok OnUnaryExpr(Opcode op) override { return validate(&V::OnUnary, place(), op); }
  Ok OnBlockExpr(wabt::Type sig) override {
    open(BodyScan::Kind::kBlock, sig);
    return validate(&V::OnBlock, place(), sig);
  }
  Ok OnLoopExpr(wabt::Type sig) override {
    open(BodyScan::Kind::kLoop, sig);
    return validate(&V::OnLoop, place(), sig);
  }
  Ok OnIfExpr(wabt::Type sig) override {
    open(BodyScan::Kind::kIf, sig);
    return validate(&V::OnIf, place(), sig);
  }
  Ok OnElseExpr() override {
    scan_.otherwise();
    return validate(&V::OnElse, place());
  }
  Ok OnEndExpr() override {
    // The outermost block of a body or initializer is ended by the event that ends the whole.
    if (depth_ == 0) {
      ended_ = true;
      return Ok::Ok;
    }
    --depth_;
    scan_.end();
    return validate(&V::OnEnd, place());
  }
  Ok OnBrExpr(Index depth) override {
    scan_.branch(depth);
    return validate(&V::OnBr, place(), var(depth));
  }
  Ok OnBrIfExpr(Index depth) override {
    scan_.branch(depth);
    return validate(&V::OnBrIf, place(), var(depth));
  }
  Ok OnBrTableExpr(Index count, Index* depths, Index otherwise) override {
    validate(&V::BeginBrTable, place());
    scan_.branch(otherwise);
    for (Index i = 0; i < count; ++i) {
      scan_.branch(depths[i]);
      validate(&V::OnBrTableTarget, place(), var(depths[i]));
    }
    validate(&V::OnBrTableTarget, place(), var(otherwise));
    return validate(&V::EndBrTable, place());
  }
  Ok OnReturnExpr() override { return validate(&V::OnReturn, place()); }
  Ok OnUnreachableExpr() override { return validate(&V::OnUnreachable, place()); }
  Ok OnNopExpr() override { return validate(&V::OnNop, place()); }
  Ok OnDropExpr() override { return validate(&V::OnDrop, place()); }
  Ok OnSelectExpr(Index count, wabt::Type* types) override {
    for (Index i = 0; i < count; ++i) refuse_ref(types[i]);
    validate(&V::OnSelect, place(), count, types);
    if (count == 0 && op_ == Op::kSelectTyped) {
      set(invalid_, ErrorCode::kInvalidInput, opcode_at_, "invalid arity in select instruction: 0");
    }
    if (count != 1) return Ok::Ok;
    // The validator leaves a value of any type, which every instruction would take for its own.
    validate(&V::OnDrop, place());
    return validate(&V::OnConst, place(), types[0]);
  }
  Ok OnCallExpr(Index function) override { return validate(&V::OnCall, place(), var(function)); }
  Ok OnCallIndirectExpr(Index type, Index table) override {
    return validate(&V::OnCallIndirect, place(), var(type), var(table));
  }
  Ok OnI32ConstExpr(uint32_t v) override { return constant(wabt::Type::I32, Type::kI32, v); }
  Ok OnI64ConstExpr(uint64_t v) override { return constant(wabt::Type::I64, Type::kI64, v); }
  Ok OnF32ConstExpr(uint32_t v) override { return constant(wabt::Type::F32, Type::kF32, v); }
  Ok OnF64ConstExpr(uint64_t v) override { return constant(wabt::Type::F64, Type::kF64, v); }
  Ok OnGlobalGetExpr(Index index) override {
    if (init_ != nullptr) init_->global = index;
    return validate(&V::OnGlobalGet, place(), var(index));
  }
  Ok OnGlobalSetExpr(Index index) override {
    return validate(&V::OnGlobalSet, place(), var(index));
  }
  Ok OnLocalGetExpr(Index index) override {
    // Same rule as for a constant of the same type, which the validator checks faster.
    bool known = index < locals_.size() && locals_[index] != wabt::Type::Any;
    return known ? validate(&V::OnConst, place(), locals_[index])
                 : validate(&V::OnLocalGet, place(), var(index));
  }
  Ok OnLocalSetExpr(Index index) override { return validate(&V::OnLocalSet, place(), var(index)); }
  Ok OnLocalTeeExpr(Index index) override { return validate(&V::OnLocalTee, place(), var(index)); }
  Ok OnLoadExpr(Opcode op, Index memory, wabt::Address align, wabt::Address) override {
    scan_.access_memory();
    return is_usual(op, memory, align)
               ? validate(&V::OnUnary, place(), op)
               : validate(&V::OnLoad, place(), op, var(memory), bytes(align));
  }
  Ok OnStoreExpr(Opcode op, Index memory, wabt::Address align, wabt::Address) override {
    scan_.access_memory();
    return is_usual(op, memory, align)
               ? validate(&V::OnBinary, place(), op)
               : validate(&V::OnStore, place(), op, var(memory), bytes(align));
  }
  Ok OnMemorySizeExpr(Index memory) override {
    return validate(&V::OnMemorySize, place(), var(memory));
  }
  Ok OnMemoryGrowExpr(Index memory) override {
    return validate(&V::OnMemoryGrow, place(), var(memory));
  }
  Ok OnMemoryFillExpr(Index memory) override {
    return validate(&V::OnMemoryFill, place(), var(memory));
  }
  Ok OnMemoryCopyExpr(Index from, Index to) override {
    return validate(&V::OnMemoryCopy, place(), var(from), var(to));
  }
  Ok OnMemoryInitExpr(Index segment, Index memory) override {
    return validate(&V::OnMemoryInit, place(), var(segment), var(memory));
  }
  Ok OnDataDropExpr(Index segment) override {
    return validate(&V::OnDataDrop, place(), var(segment));
  }
  Ok OnTableCopyExpr(Index to, Index from) override {
    return validate(&V::OnTableCopy, place(), var(to), var(from));
  }
  Ok OnTableInitExpr(Index segment, Index table) override {
    return validate(&V::OnTableInit, place(), var(segment), var(table));
  }
  Ok OnElemDropExpr(Index segment) override {
    return validate(&V::OnElemDrop, place(), var(segment));
  }
  // In initializers, where references may stand, they are refused as everywhere.
  Ok OnRefFuncExpr(Index function) override {
    refuse_ref(wabt::Type::FuncRef);
    return validate(&V::OnRefFunc, place(), var(function));
  }
  Ok OnRefNullExpr(wabt::Type type) override {
    refuse_ref(type);
    return validate(&V::OnRefNull, place(), type);
  }
  Ok OnRefIsNullExpr() override {
    refuse_ref(wabt::Type::FuncRef);
    return validate(&V::OnRefIsNull, place());
  }

 protected:
  uint64_t offset() const { return state->offset + delta_; }
  Location here() const { return Location(offset()); }
  Location place() const { return Location(opcode_at_); }
  Var var(Index index) const { return Var(index, place()); }
  static wabt::Address bytes(wabt::Address log2) {
    return log2 < 32 ? wabt::Address{1} << log2 : wabt::Address{1} << 32;
  }
  // Returns whether an access names the memory with a legal alignment. The rest of its rule is the same as
  // for an operation on an address, or on an address and a value, which the validator checks faster: it
  // has the operands of both in one table.
  bool is_usual(Opcode op, Index memory, wabt::Address align) const {
    return memory == 0 && info_.memory && bytes(align) <= op.GetMemorySize();
  }
  // Returns Any for types that are no numbers.
  static wabt::Type number_type(Type t) {
    switch (t) {
      case Type::kI32: return wabt::Type::I32;
      case Type::kI64: return wabt::Type::I64;
      case Type::kF32: return wabt::Type::F32;
      case Type::kF64: return wabt::Type::F64;
      default: return wabt::Type::Any;
    }
  }
  static wabt::SegmentKind segment_kind(uint8_t flags) {
    if ((flags & wabt::SegDeclared) == wabt::SegDeclared) return wabt::SegmentKind::Declared;
    return flags & wabt::SegPassive ? wabt::SegmentKind::Passive : wabt::SegmentKind::Active;
  }

  static void set(std::optional<Error>& slot, ErrorCode code, uint64_t offset,
                  const std::string& message) {
    if (!slot) slot = Error{code, at_offset(offset, message)};
  }
  void refuse(const std::string& why) { refuse_at(offset(), why); }
  void refuse_at(uint64_t at, const std::string& why) {
    set(unsupported_, ErrorCode::kUnsupported, at, "not supported: " + why + where());
  }

  // Refuses an instruction that has no row, and ends the reading: how long it is nobody here knows.
  Ok not_served(Opcode op) {
    const uint8_t prefix = opcode_at_ < info_.bytes.size() ? info_.bytes[opcode_at_] : 0;
    const uint32_t number = CodeReader(info_.bytes, opcode_at_ + 1, UINT32_MAX).u32();
    const char* feature = feature_of(prefix, number);
    if (feature == nullptr) {
      set(malformed_, ErrorCode::kCorruptInput, opcode_at_, "unexpected opcode: " + hex(prefix));
      return Ok::Error;
    }
    refuse_at(opcode_at_,
              op.IsInvalid() ? feature : feature + (" (" + std::string(op.GetName())) + ")");
    stopped_ = true;
    return Ok::Error;
  }
  // References are served as entries of the one table, which elements and bulk instructions fill and
  // call_indirect reads. Compilers that turn reference types on by default need no more: they write
  // the table's number, always 0, in five bytes where there was a reserved one.
  void refuse_ref(wabt::Type type) {
    if (type.IsRef()) refuse("the module uses references as values");
  }

  void open(BodyScan::Kind kind, wabt::Type sig) {
    ++depth_;
    scan_.open(kind, static_cast<uint32_t>(opcode_at_));
    refuse_ref(sig);
  }

  // Asks the validator, up to its first error; the reader always goes on.
  template <typename... Params, typename... Args>
  Ok validate(Ok (V::*rule)(Params...), Args&&... args) {
    if (invalid_ || wabt::Succeeded((validator_.*rule)(std::forward<Args>(args)...))) return Ok::Ok;
    if (rules_.errors.empty()) {
      set(invalid_, ErrorCode::kInvalidInput, offset(), "the module does not validate");
    } else {
      set(invalid_, ErrorCode::kInvalidInput, rules_.errors[0].loc.offset,
          rules_.errors[0].message);
    }
    return Ok::Ok;
  }

  // Initializers are no code that is translated: their events are taken down. The validator would
  // have some instructions pass that no initializer may have.
  Ok constant_opcode(Opcode op) {
    opcode_at_ = offset() - (op.IsInvalid() ? 1 : op.GetLength());
    switch (op) {
      case Opcode::I32Const:
      case Opcode::I64Const:
      case Opcode::F32Const:
      case Opcode::F64Const:
      case Opcode::GlobalGet:
      case Opcode::RefNull:
      case Opcode::RefFunc:
      case Opcode::End: return Ok::Ok;
      default: break;
    }
    if (op.IsInvalid()) return Ok::Ok;  // the library's reader says it
    const bool extended = op == Opcode::I32Add || op == Opcode::I32Sub || op == Opcode::I32Mul ||
                          op == Opcode::I64Add || op == Opcode::I64Sub || op == Opcode::I64Mul;
    set(invalid_, ErrorCode::kInvalidInput, opcode_at_,
        std::string("invalid initializer: instruction not valid in initializer expression: ") +
            op.GetName() + (extended ? "; not supported: extended constant expressions" : ""));
    return Ok::Ok;
  }

  void differ() {
    // Only one of the two readers knows what is refused.
    if (unsupported_) return;
    set(malformed_, ErrorCode::kCorruptInput, offset(), "this encoding is not the standard's");
  }
  // Our reader must stand where the library's does, at each boundary of a body.
  void keep_step() {
    if (reads_ == Reads::kDeclarations || (ours_.offset() == offset() && !ours_.bad())) return;
    differ();
    ours_ = CodeReader(info_.bytes, offset(), body_end_);
  }

  Ok constant(wabt::Type type, Type ours, uint64_t bits) {
    if (init_ != nullptr) *init_ = {ours, bits, {}};
    return validate(&V::OnConst, place(), type);
  }

  ModuleInfo& info_;
  Rules& rules_;
  V& validator_;
  ConstExpr* init_ = nullptr;  // the initializer that is being read
  uint32_t depth_ = 0;         // open blocks
  std::optional<Error> malformed_;

 private:
  const Reads reads_;
  const uint32_t first_;
  const uint64_t delta_;
  std::optional<Error> invalid_;
  std::optional<uint64_t> stuck_at_;
  std::optional<Error> unsupported_;
  uint64_t body_end_ = 0;
  uint64_t opcode_at_ = 0;
  uint64_t local_count_ = 0;
  std::vector<wabt::Type> locals_;  // of the body, parameters first; Any: the validator knows
  BodyScan scan_;
  CodeReader ours_;        // over the bytes of the body, in step with the library's
  Op op_ = Op::kNop;       // that is read
  uint32_t function_ = 0;  // that is read
  bool ended_ = false;
  bool in_body_ = false;
  bool stopped_ = false;  // at an unsupported instruction
};

}  // namespace uptier::wasm
