// module_collector.h: what a module's sections say, validated as they are read. After the door of
// read_module.h.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "embed/wasm/body_checker.h"

namespace uptier::wasm {

inline constexpr uint32_t kMaxValues = 1000;  // parameters, or results, of one type

// Returns kNone for types that are no numbers; modules with such types are refused.
inline Type to_type(wabt::Type t) {
  switch (t) {
    case wabt::Type::I32: return Type::kI32;
    case wabt::Type::I64: return Type::kI64;
    case wabt::Type::F32: return Type::kF32;
    case wabt::Type::F64: return Type::kF64;
    default: return Type::kNone;
  }
}

inline Limits to_limits(const wabt::Limits& l) {
  Limits limits{l.initial, {}};
  if (l.has_max) limits.max = l.max;
  return limits;
}

// Takes the reader's events: collects what the module says, and has each one validated.
class ModuleCollector final : public BodyChecker {
 public:
  ModuleCollector(ModuleInfo& info, Rules& rules, Reads reads) : BodyChecker(info, rules, reads) {}

  std::span<const uint8_t> name_section() const { return name_section_; }

  // ---- Sections ------------------------------------------------------------------------------

  Ok EndModule() override {
    // The library compares the two where there is a section of data only.
    if (rules_.has_data_count && data_count_ != info_.data.size()) {
      set(malformed_, ErrorCode::kCorruptInput, offset(),
          "data count and data section have inconsistent lengths");
    }
    return validate(&V::EndModule);
  }

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
    for (Index i = 0; i < params; ++i) refuse_type(param_types[i]);
    for (Index i = 0; i < results; ++i) refuse_type(result_types[i]);
    info_.types.push_back(std::move(type));
    if (params > kMaxValues || results > kMaxValues) refuse("a function type has too many values");
    return validate(&V::OnFuncType, here(), params, param_types, results, result_types, index);
  }

  Ok OnImportFunc(Index, std::string_view module, std::string_view name, Index index,
                  Index type) override {
    add_import(module, name, ExternKind::kFunction, index);
    ++info_.imported_functions;
    info_.functions.push_back({type, 0, 0, {}});
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
    refuse_type(type);
    return validate(&V::OnGlobalImport, here(), type, is_mutable);
  }

  Ok OnFunctionCount(Index count) override {
    // Each takes a byte at least, whatever the count says.
    info_.functions.reserve(info_.functions.size() + std::min<size_t>(count, state->size));
    return Ok::Ok;
  }
  Ok OnFunction(Index, Index type) override {
    info_.functions.push_back({type, 0, 0, {}});
    return validate(&V::OnFunction, here(), var(type));
  }

  Ok OnTable(Index index, wabt::Type elem, const wabt::Limits* limits) override {
    if (index != 0) refuse("the module has several tables");
    if (elem != wabt::Type::FuncRef) refuse_ref(elem);
    info_.table = to_limits(*limits);
    return validate(&V::OnTable, here(), elem, *limits);
  }

  Ok OnMemory(Index index, const wabt::Limits* limits) override {
    if (index != 0) {
      refuse("the module has several memories (multi-memory)");
      return Ok::Ok;
    }
    info_.memory = to_limits(*limits);
    return validate(&V::OnMemory, here(), *limits);
  }

  Ok BeginGlobal(Index, wabt::Type type, bool is_mutable) override {
    info_.globals.push_back({{to_type(type), is_mutable}, {}});
    global_type_ = type;
    refuse_type(type);
    return validate(&V::OnGlobal, here(), type, is_mutable);
  }
  Ok BeginGlobalInitExpr(Index) override {
    return begin_init(info_.globals.back().init, global_type_);
  }
  Ok EndGlobalInitExpr(Index) override { return end_init(); }

  Ok OnExport(Index, wabt::ExternalKind kind, Index index, std::string_view name) override {
    info_.exports.push_back({std::string(name), static_cast<ExternKind>(kind), index});
    bool is_global = kind == wabt::ExternalKind::Global && index < info_.globals.size();
    if (is_global) info_.globals[index].is_exported = true;
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
    info_.elems.back().is_declarative = segment_kind(flags) == wabt::SegmentKind::Declared;
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
    rules_.has_data_count = true;
    data_count_ = count;
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

 private:
  void refuse_type(wabt::Type type) {
    refuse_ref(type);
    if (to_type(type) == Type::kNone) refuse("values of type " + type.GetName());
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

  std::span<const uint8_t> name_section_;
  uint64_t section_end_ = 0;
  uint64_t data_count_ = 0;
  wabt::Type global_type_ = wabt::Type::I32;
};

}  // namespace uptier::wasm
