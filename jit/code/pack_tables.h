// pack_tables: the tables of recorded baseline code as bytes, and back.
//
// Offsets and locations are written as differences from the row before, 7 bits per byte
// (profile/base/varint.h): a row takes two to four bytes in place of sixteen.
#pragma once

#include <cstdint>

#include "jit/code/code.h"
#include "profile/base/bytes.h"
#include "profile/base/varint.h"
#include "uptier/result.h"

namespace uptier::jit {

// Appends the tables. Errors: kUnsupported if there are rows that only other code has (exits,
// inlined bodies, counters, entries); then nothing useful was appended.
Status pack_tables(const CodeTables& tables, profile::Bytes& out);

// Reads what pack_tables wrote, for a body of `size` bytes. Errors: kCorruptInput if numbers are
// missing, a row lies outside of the body, or rows do not rise.
Result<CodeTables> unpack_tables(profile::VarintReader& in, uint32_t size);

}  // namespace uptier::jit
