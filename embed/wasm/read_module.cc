#include "embed/wasm/read_module.h"

#include <cstdio>
#include <string>
#include <utility>

#include "embed/wasm/read_names.h"
#include "wabt/binary-reader-nop.h"
#include "wabt/shared-validator.h"

namespace uptier::wasm {
namespace {

using wabt::Index;
using wabt::Location;
using wabt::Offset;
using wabt::Opcode;
using wabt::Var;
using Ok = wabt::Result;
using V = wabt::SharedValidator;

// What engines agree to serve; past it a valid module is refused.
constexpr uint32_t kMaxLocals = 50000;
constexpr uint32_t kMaxValues = 1000;  // parameters, or results, of one type

wabt::Features served_features() {
  wabt::Features f;  // the library's defaults have sign extension, multiple values, ... on
  // Of reference types the encoding is served, which compilers use in every module; see refuse_ref.
  f.enable_reference_types();
  f.disable_simd();
  f.disable_exceptions();
  f.disable_threads();
  f.disable_function_references();
  f.disable_tail_call();
  f.disable_gc();
  f.disable_memory64();
  f.disable_multi_memory();
  f.disable_extended_const();
  f.disable_relaxed_simd();
  f.enable_bulk_memory();
  return f;
}

// Returns kNone for what is no number; a module that has any is not kept.
Type to_type(wabt::Type t) {
  switch (t) {
    case wabt::Type::I32: return Type::kI32;
    case wabt::Type::I64: return Type::kI64;
    case wabt::Type::F32: return Type::kF32;
    case wabt::Type::F64: return Type::kF64;
    default: return Type::kNone;
  }
}

Limits to_limits(const wabt::Limits& l) {
  Limits limits{l.initial, {}};
  if (l.has_max) limits.max = l.max;
  return limits;
}

// Some rules of validation are checked by the reader already; they are told apart by their words.
bool is_validation_rule(const std::string& message) {
  for (const char* words : {"memory index", "load/store memory", "no memory to copy"}) {
    if (message.starts_with(words)) return true;
  }
  return false;
}

std::string at(uint64_t offset, const std::string& message) {
  char place[40];
  std::snprintf(place, sizeof place, "at offset 0x%llx: ", static_cast<unsigned long long>(offset));
  return place + message;
}

// Takes the reader's events: collects what the module says, and has each one validated. Validation
// stops at its first error, reading goes on: a malformed module is malformed whatever else it is.
class Collector final : public wabt::BinaryReaderNop {
 public:
  Collector(ModuleInfo& info, const wabt::Features& features)
      : info_(info), validator_(&errors_, wabt::ValidateOptions(features)) {}

  const std::optional<Error>& malformed() const { return malformed_; }
  const std::optional<Error>& invalid() const { return invalid_; }
  const std::optional<Error>& unsupported() const { return unsupported_; }
  std::span<const uint8_t> name_section() const { return name_section_; }

  bool OnError(const wabt::Error& e) override {
    if (e.error_level == wabt::ErrorLevel::Warning) return true;
    if (is_validation_rule(e.message)) {
      set(invalid_, ErrorCode::kInvalidInput, e.loc.offset, e.message);
    } else {
      set(malformed_, ErrorCode::kCorruptInput, e.loc.offset, e.message);
    }
    return true;
  }

  // ---- Sections ------------------------------------------------------------------------------

  Ok EndModule() override { return validate(&V::EndModule); }

  Ok BeginSection(Index, wabt::BinarySection, Offset size) override {
    section_end_ = state->offset + size;
    return Ok::Ok;
  }

  Ok BeginCustomSection(Index, Offset, std::string_view name) override {
    // The reader is past the name now; the rest of the section is the payload.
    if (name == "name" && state->offset <= section_end_ && section_end_ <= state->size) {
      name_section_ = {state->data + state->offset, state->data + section_end_};
    }
    return Ok::Ok;
  }

  Ok OnFuncType(Index index, Index params, wabt::Type* param_types, Index results,
                wabt::Type* result_types) override {
    FuncType type;
    for (Index i = 0; i < params; ++i) type.params.push_back(to_type(param_types[i]));
    for (Index i = 0; i < results; ++i) type.results.push_back(to_type(result_types[i]));
    for (Index i = 0; i < params; ++i) refuse_ref(param_types[i]);
    for (Index i = 0; i < results; ++i) refuse_ref(result_types[i]);
    info_.types.push_back(std::move(type));
    if (params > kMaxValues || results > kMaxValues) refuse("a function type has too many values");
    return validate(&V::OnFuncType, here(), params, param_types, results, result_types, index);
  }

  Ok OnImportFunc(Index, std::string_view module, std::string_view name, Index index,
                  Index type) override {
    add_import(module, name, ExternKind::kFunction, index);
    ++info_.imported_functions;
    info_.functions.push_back({type, 0, 0, {}, {}});
    return validate(&V::OnFunction, here(), var(type));
  }

  Ok OnImportTable(Index, std::string_view module, std::string_view name, Index index,
                   wabt::Type elem, const wabt::Limits* limits) override {
    add_import(module, name, ExternKind::kTable, index);
    info_.imports_table = true;
    return OnTable(index, elem, limits);
  }

  Ok OnImportMemory(Index, std::string_view module, std::string_view name, Index index,
                    const wabt::Limits* limits) override {
    add_import(module, name, ExternKind::kMemory, index);
    info_.imports_memory = true;
    return OnMemory(index, limits);
  }

  Ok OnImportGlobal(Index, std::string_view module, std::string_view name, Index index,
                    wabt::Type type, bool is_mutable) override {
    add_import(module, name, ExternKind::kGlobal, index);
    ++info_.imported_globals;
    info_.globals.push_back({{to_type(type), is_mutable}, {}});
    refuse_ref(type);
    return validate(&V::OnGlobalImport, here(), type, is_mutable);
  }

  Ok OnFunction(Index, Index type) override {
    info_.functions.push_back({type, 0, 0, {}, {}});
    return validate(&V::OnFunction, here(), var(type));
  }

  Ok OnTable(Index index, wabt::Type elem, const wabt::Limits* limits) override {
    if (index != 0) refuse("the module has several tables");
    if (elem != wabt::Type::FuncRef) refuse_ref(elem);
    info_.table = to_limits(*limits);
    return validate(&V::OnTable, here(), elem, *limits);
  }

  Ok OnMemory(Index, const wabt::Limits* limits) override {
    info_.memory = to_limits(*limits);
    return validate(&V::OnMemory, here(), *limits);
  }

  Ok BeginGlobal(Index, wabt::Type type, bool is_mutable) override {
    info_.globals.push_back({{to_type(type), is_mutable}, {}});
    global_type_ = type;
    refuse_ref(type);
    return validate(&V::OnGlobal, here(), type, is_mutable);
  }
  Ok BeginGlobalInitExpr(Index) override {
    return begin_init(info_.globals.back().init, global_type_);
  }
  Ok EndGlobalInitExpr(Index) override { return end_init(); }

  Ok OnExport(Index, wabt::ExternalKind kind, Index index, std::string_view name) override {
    info_.exports.push_back({std::string(name), static_cast<ExternKind>(kind), index});
    return validate(&V::OnExport, here(), kind, var(index), name);
  }

  Ok OnStartFunction(Index index) override {
    info_.start = index;
    return validate(&V::OnStart, here(), var(index));
  }

  // ---- Segments ------------------------------------------------------------------------------

  Ok BeginElemSegment(Index, Index table, uint8_t flags) override {
    info_.elems.emplace_back();
    info_.elems.back().is_active = (flags & wabt::SegPassive) == 0;
    return validate(&V::OnElemSegment, here(), var(table), segment_kind(flags));
  }
  Ok BeginElemSegmentInitExpr(Index) override {
    return begin_init(info_.elems.back().offset, wabt::Type::I32);
  }
  Ok EndElemSegmentInitExpr(Index) override { return end_init(); }
  Ok OnElemSegmentElemType(Index, wabt::Type type) override {
    if (type != wabt::Type::FuncRef) refuse_ref(type);
    return validate(&V::OnElemSegmentElemType, here(), type);
  }
  Ok OnElemSegmentElemExpr_RefNull(Index, wabt::Type type) override {
    info_.elems.back().functions.push_back(ElemSegment::kNullFunction);
    return validate(&V::OnElemSegmentElemExpr_RefNull, here(), type);
  }
  Ok OnElemSegmentElemExpr_RefFunc(Index, Index function) override {
    info_.elems.back().functions.push_back(function);
    return validate(&V::OnElemSegmentElemExpr_RefFunc, here(), var(function));
  }

  Ok OnDataCount(Index count) override {
    validator_.OnDataCount(count);
    return Ok::Ok;
  }
  Ok BeginDataSegment(Index, Index memory, uint8_t flags) override {
    info_.data.emplace_back();
    info_.data.back().is_active = (flags & wabt::SegPassive) == 0;
    return validate(&V::OnDataSegment, here(), var(memory), segment_kind(flags));
  }
  Ok BeginDataSegmentInitExpr(Index) override {
    return begin_init(info_.data.back().offset, wabt::Type::I32);
  }
  Ok EndDataSegmentInitExpr(Index) override { return end_init(); }
  Ok OnDataSegmentData(Index, const void* data, wabt::Address size) override {
    info_.data.back().bytes = {static_cast<const uint8_t*>(data), size};
    return Ok::Ok;
  }

  // ---- Function bodies -----------------------------------------------------------------------

  Ok BeginFunctionBody(Index function, Offset size) override {
    info_.functions[function].body_begin = static_cast<uint32_t>(state->offset);
    info_.functions[function].body_end = static_cast<uint32_t>(state->offset + size);
    body_end_ = state->offset + size;
    local_count_ = 0;
    depth_ = 0;
    ended_ = false;
    in_body_ = true;
    return validate(&V::BeginFunctionBody, here(), function);
  }
  Ok OnLocalDecl(Index, Index count, wabt::Type type) override {
    local_count_ += count;
    if (local_count_ > kMaxLocals) refuse("a function has too many locals");
    refuse_ref(type);
    return validate(&V::OnLocalDecl, here(), count, type);
  }
  Ok EndFunctionBody(Index function) override {
    in_body_ = false;
    info_.functions[function].facts = scan_.take();
    if (!ended_ || state->offset != body_end_) {
      set(malformed_, ErrorCode::kCorruptInput, state->offset,
          "function body does not end with the end of its outermost block");
    }
    return validate(&V::EndFunctionBody, here());
  }

  Ok OnOpcode(Opcode op) override {
    // Those below have no prefix; GetLength() makes a list of the bytes to count them.
    opcode_at_ = state->offset - (op < wabt::Opcode::I32TruncSatF32S ? 1 : op.GetLength());
    if (in_body_ && ended_) {
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
      check_same_label_types(depths[i], otherwise);
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
    return validate(&V::OnSelect, place(), count, types);
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
  Ok OnLocalGetExpr(Index index) override { return validate(&V::OnLocalGet, place(), var(index)); }
  Ok OnLocalSetExpr(Index index) override { return validate(&V::OnLocalSet, place(), var(index)); }
  Ok OnLocalTeeExpr(Index index) override { return validate(&V::OnLocalTee, place(), var(index)); }
  Ok OnLoadExpr(Opcode op, Index memory, wabt::Address align, wabt::Address) override {
    scan_.access_memory();
    return validate(&V::OnLoad, place(), op, var(memory), bytes(align));
  }
  Ok OnStoreExpr(Opcode op, Index memory, wabt::Address align, wabt::Address) override {
    scan_.access_memory();
    return validate(&V::OnStore, place(), op, var(memory), bytes(align));
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
  // References as values are not served: what makes, tests or stores one is refused.
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
  Ok OnTableGetExpr(Index table) override {
    refuse_ref(wabt::Type::FuncRef);
    return validate(&V::OnTableGet, place(), var(table));
  }
  Ok OnTableSetExpr(Index table) override {
    refuse_ref(wabt::Type::FuncRef);
    return validate(&V::OnTableSet, place(), var(table));
  }
  Ok OnTableFillExpr(Index table) override {
    refuse_ref(wabt::Type::FuncRef);
    return validate(&V::OnTableFill, place(), var(table));
  }
  Ok OnTableGrowExpr(Index table) override {
    refuse("the module uses table.grow");
    return validate(&V::OnTableGrow, place(), var(table));
  }
  Ok OnTableSizeExpr(Index table) override {
    refuse("the module uses table.size");
    return validate(&V::OnTableSize, place(), var(table));
  }

 private:
  Location here() const { return Location(state->offset); }
  Location place() const { return Location(opcode_at_); }
  Var var(Index index) const { return Var(index, place()); }
  static wabt::Address bytes(wabt::Address log2) {
    return log2 < 32 ? wabt::Address{1} << log2 : wabt::Address{1} << 32;
  }
  static wabt::SegmentKind segment_kind(uint8_t flags) {
    if ((flags & wabt::SegDeclared) == wabt::SegDeclared) return wabt::SegmentKind::Declared;
    return flags & wabt::SegPassive ? wabt::SegmentKind::Passive : wabt::SegmentKind::Active;
  }

  static void set(std::optional<Error>& slot, ErrorCode code, uint64_t offset,
                  const std::string& message) {
    if (!slot) slot = Error{code, at(offset, message)};
  }
  void refuse(const char* why) {
    set(unsupported_, ErrorCode::kUnsupported, state->offset, std::string("not supported: ") + why);
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
    if (errors_.empty()) {
      set(invalid_, ErrorCode::kInvalidInput, state->offset, "the module does not validate");
    } else {
      set(invalid_, ErrorCode::kInvalidInput, errors_[0].loc.offset, errors_[0].message);
    }
    return Ok::Ok;
  }

  // All targets of a br_table take the same types here, in dead code too. The validator has the
  // rule of reference types, by which dead code may mix them.
  void check_same_label_types(Index a, Index b) {
    V::Label* x = nullptr;
    V::Label* y = nullptr;
    if (invalid_ || wabt::Failed(validator_.GetLabel(a, &x)) ||
        wabt::Failed(validator_.GetLabel(b, &y)) || x->br_types() == y->br_types()) {
      return;
    }
    set(invalid_, ErrorCode::kInvalidInput, opcode_at_, "type mismatch: br_table targets differ");
  }

  Ok constant(wabt::Type type, Type ours, uint64_t bits) {
    if (init_ != nullptr) *init_ = {ours, bits, {}};
    return validate(&V::OnConst, place(), type);
  }

  Ok begin_init(ConstExpr& into, wabt::Type type) {
    init_ = &into;
    depth_ = 0;
    return validate(&V::BeginInitExpr, here(), type);
  }
  Ok end_init() {
    init_ = nullptr;
    return validate(&V::EndInitExpr);
  }

  void add_import(std::string_view module, std::string_view name, ExternKind kind, Index index) {
    info_.imports.push_back({std::string(module), std::string(name), kind, index});
  }

  ModuleInfo& info_;
  wabt::Errors errors_;
  V validator_;
  std::optional<Error> malformed_;
  std::optional<Error> invalid_;
  std::optional<Error> unsupported_;
  std::span<const uint8_t> name_section_;
  uint64_t section_end_ = 0;
  uint64_t body_end_ = 0;
  uint64_t opcode_at_ = 0;
  uint64_t local_count_ = 0;
  BodyScan scan_;
  uint32_t depth_ = 0;
  bool ended_ = false;
  bool in_body_ = false;
  wabt::Type global_type_ = wabt::Type::I32;
  ConstExpr* init_ = nullptr;
};

// Gives every function a name: from the section, else from its first export, else its number.
void name_functions(ModuleInfo& info, std::span<const uint8_t> section) {
  std::vector<std::string> names(info.functions.size());
  for (const Export& e : info.exports) {
    if (e.kind == ExternKind::kFunction && names[e.index].empty()) names[e.index] = e.name;
  }
  read_function_names(section, names);
  for (uint32_t f = 0; f < names.size(); ++f) {
    if (names[f].empty()) names[f] = "func[" + std::to_string(f) + "]";
    info.functions[f].name = std::move(names[f]);
  }
}

}  // namespace

Result<ModuleInfo> read_module(std::vector<uint8_t> bytes) {
  if (bytes.size() > UINT32_MAX) {
    return Error{ErrorCode::kUnsupported, "the module is larger than 4 GiB"};
  }
  ModuleInfo info;
  info.bytes = std::move(bytes);
  wabt::ReadBinaryOptions options;
  options.features = served_features();
  // Names are read apart: this reader refuses modules whose name section is not the last.
  options.read_debug_names = false;
  options.stop_on_first_error = true;
  options.fail_on_custom_section_error = false;
  Collector collector(info, options.features);
  auto read = wabt::ReadBinary(info.bytes.data(), info.bytes.size(), &collector, options);
  if (collector.malformed()) return *collector.malformed();
  if (collector.invalid()) return *collector.invalid();
  if (wabt::Failed(read)) return Error{ErrorCode::kCorruptInput, "the module cannot be read"};
  if (collector.unsupported()) return *collector.unsupported();
  name_functions(info, collector.name_section());
  return info;
}

}  // namespace uptier::wasm
