// tsv_rows.h: what the writer and the reader of rows share. See tsv.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "uptier/profile.h"

namespace uptier::profile {

inline constexpr std::string_view kTsvHead =
    "module\tfunction\tmethod\tcfg_hash\tschema\tkind\tsite\tword\tkey_module\tkey\trule\tcount\t"
    "estimate";
inline constexpr size_t kTsvColumns = 13;

// A wide sum is four limbs, each a word of its own: its name, a dot and a digit.
inline constexpr unsigned kLimbs = 4;
inline constexpr unsigned kLimbBits = 32;

// Names a schema: rows of one name add up.
uint64_t schema_name(const Schema& schema);

}  // namespace uptier::profile
