// place_code: makes Code from a body that was recorded, perhaps by another process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "jit/code/code.h"
#include "jit/code/code_ref.h"
#include "uptier/result.h"

namespace uptier::jit {

// A field and what it stands for in this process: a full address for kDistance and kAddress, else
// the contents of the field.
struct FilledRef {
  uint32_t offset = 0;
  CodeRef::Kind kind = CodeRef::Kind::kDistance;
  uint64_t value = 0;
};

struct BodyToPlace {
  std::span<const uint8_t> bytes;
  uint32_t hot_size = 0;
  uint32_t entry_offset = 0;
  std::span<const FilledRef> refs;
};

// Copies the bytes to a place of their own, fills in the fields, and publishes them. The space must
// be packed if and only if that of the recording process was.
//
// Thread: any. Errors: kResourceExhausted as CodeSpace::allocate; kCorruptInput if a field or a
// part lies outside of the bytes, or a target out of reach.
Result<std::unique_ptr<Code>> place_code(CodeSpace& space, const BodyToPlace& body,
                                         CodeTables tables, MethodId method);

}  // namespace uptier::jit
