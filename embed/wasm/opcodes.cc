#include "embed/wasm/opcodes.h"

namespace uptier::wasm {
namespace {

constexpr const char* kExceptions = "exception handling";
constexpr const char* kTailCalls = "tail calls";
constexpr const char* kReferences = "references as values";
constexpr const char* kTypedReferences = "typed function references";
constexpr const char* kCollection = "garbage collection";

// Returns the feature of an instruction with prefix 0xfc.
const char* feature_of_math(uint32_t number) {
  if (number >= 0x0f && number <= 0x11) return kReferences;  // table.grow, table.size, table.fill
  if (number >= 0x13 && number <= 0x16) return "wide arithmetic";
  return nullptr;
}

}  // namespace

const char* feature_of(uint8_t prefix, uint32_t number) {
  switch (prefix) {
    case 0x06:                           // try
    case 0x07:                           // catch
    case 0x08:                           // throw
    case 0x09:                           // rethrow
    case 0x0a:                           // throw_ref
    case 0x18:                           // delegate
    case 0x19:                           // catch_all
    case 0x1f: return kExceptions;       // try_table
    case 0x12:                           // return_call
    case 0x13: return kTailCalls;        // return_call_indirect
    case 0x14:                           // call_ref
    case 0x15:                           // return_call_ref
    case 0xd4:                           // ref.as_non_null
    case 0xd5:                           // br_on_null
    case 0xd6: return kTypedReferences;  // br_on_non_null
    case 0x25:                           // table.get
    case 0x26:                           // table.set
    case 0xd0:                           // ref.null
    case 0xd1:                           // ref.is_null
    case 0xd2: return kReferences;       // ref.func
    case 0xd3:                           // ref.eq
    case 0xfb: return kCollection;
    case 0xfc: return feature_of_math(number);
    case 0xfd: return number < 0x100 ? "SIMD" : "relaxed SIMD";
    case 0xfe: return "threads and atomics";
    default: return nullptr;
  }
}

}  // namespace uptier::wasm
