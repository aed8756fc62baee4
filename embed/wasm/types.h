// types.h: WebAssembly's types and values as the engine's users see them.
//
// Value types are uptier::Type without kRef and kNone: the engine serves the numeric types only.
// Values travel as bits, so no NaN payload is ever lost.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "uptier/ids.h"

namespace uptier::wasm {

// Type of a function: any number of parameters and results.
struct FuncType {
  std::vector<Type> params;
  std::vector<Type> results;

  friend bool operator==(const FuncType&, const FuncType&) = default;
  friend auto operator<=>(const FuncType&, const FuncType&) = default;
};

// Returns "(i32, i64) -> (f32)".
std::string to_string(const FuncType& type);

struct GlobalType {
  Type type = Type::kI32;
  bool is_mutable = false;

  friend bool operator==(const GlobalType&, const GlobalType&) = default;
};

// Size of a memory (pages of 64 KiB) or of a table (elements). No max: as far as the engine allows.
struct Limits {
  uint64_t min = 0;
  std::optional<uint64_t> max;

  friend bool operator==(const Limits&, const Limits&) = default;
};

// A value with its type. Bits are zero-extended.
struct Val {
  Type type = Type::kI32;
  uint64_t bits = 0;

  static Val i32(int32_t v) { return {Type::kI32, static_cast<uint32_t>(v)}; }
  static Val i64(int64_t v) { return {Type::kI64, static_cast<uint64_t>(v)}; }
  static Val f32(float v) { return {Type::kF32, std::bit_cast<uint32_t>(v)}; }
  static Val f64(double v) { return {Type::kF64, std::bit_cast<uint64_t>(v)}; }

  friend bool operator==(const Val&, const Val&) = default;
};

// Kinds of imports and exports; numbered as in the binary format.
enum class ExternKind : uint8_t { kFunction, kTable, kMemory, kGlobal };
const char* extern_kind_name(ExternKind kind);

}  // namespace uptier::wasm
