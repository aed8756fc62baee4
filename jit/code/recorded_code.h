// RecordedCode: a compiled body without a place, from which any process can make Code.
//
//   bytes    the hot part, then the cold part; zeros in the fields of `refs`
//   tables   as in a Code; PlaceField::kOtherPart fields are those of parts that follow each other
#pragma once

#include <cstdint>
#include <vector>

#include "jit/code/code.h"
#include "jit/code/code_ref.h"

namespace uptier::jit {

struct RecordedCode {
  std::vector<uint8_t> bytes;
  uint32_t hot_size = 0;
  uint32_t entry_offset = 0;
  CodeTables tables;
  std::vector<CodeRef> refs;  // by rising offset

  friend bool operator==(const RecordedCode&, const RecordedCode&) = default;
};

}  // namespace uptier::jit
