// MethodRecord: the plain baseline code of one method in an image, and what its description told.
//
// All of the process in the code is named by a Symbol, of a closed list of kinds. Numbers have 7 bits
// per byte, except u64s:
//
//     loops | u64 cfg hash | blocks | blocks * instructions
//     u32 floats: headers per call, blocks * per call (bytes reversed, as numbers) | blocks * in loop
//     size | hot size | entry | refs * {offset - the one before, kind, plus | symbol} | tables | bytes
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/static_shape.h"
#include "jit/code/code.h"
#include "jit/code/code_ref.h"
#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::tiering {

// What a field of code refers to, in any process.
struct Symbol {
  enum class Kind : uint8_t {
    kOwn,       // the method itself, or the thread's context: the field says which word
    kRoutine,   // a routine of the library, by its number (symbols.h)
    kStub,      // the stub of a method of the same host, by its function index
    kRuntime,   // the runtime, as the library's slow paths get it
    kHostCode,  // a function of an object: the object's number in the image, and the offset in it
  };
  Kind kind = Kind::kOwn;
  uint32_t number = 0;
  uint64_t offset = 0;

  friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct SymbolRef {
  uint32_t offset = 0;  // of the field, in the code
  jit::CodeRef::Kind kind = jit::CodeRef::Kind::kDistance;
  uint32_t plus = 0;
  Symbol symbol;

  friend bool operator==(const SymbolRef&, const SymbolRef&) = default;
};

struct MethodRecord {
  uint32_t loop_count = 0;
  uint64_t cfg_hash = 0;
  std::vector<uint32_t> block_weights;
  jit::StaticShape static_shape;  // of all blocks
  profile::ByteSpan bytes;        // code; a view
  uint32_t hot_size = 0;
  uint32_t entry_offset = 0;
  std::vector<SymbolRef> refs;  // by rising offset
  jit::CodeTables tables;
};

// Appends a record. Errors: kUnsupported if the tables have rows that recorded code cannot have.
Status append_record(const MethodRecord& r, profile::Bytes& out);

// Reads a record, which must outlive the result. Errors: kCorruptInput.
Result<MethodRecord> read_record(profile::ByteSpan record);

}  // namespace uptier::tiering
