// tsv_rows.h: what the writer and the reader of rows share. See tsv.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

inline constexpr std::string_view kTsvHead =
    "module\tfunction\tmethod\tcfg_hash\tschema\tkind\tsite\tword\tkey_module\tkey\trule\tcount\t"
    "estimate\tvoter";
inline constexpr size_t kTsvColumns = 14;
// Of rows without voters.
inline constexpr std::string_view kTsvHeadVoterless =
    kTsvHead.substr(0, kTsvHead.size() - std::string_view("\tvoter").size());

// In front of the kind of a site of an inlined body.
inline constexpr std::string_view kInlinedKind = "inlined_";

// A wide sum is four limbs, each a word of its own: its name, a dot and a digit.
inline constexpr unsigned kLimbs = 4;
inline constexpr unsigned kLimbBits = 32;

// Names a schema: rows of one name add up.
uint64_t schema_name(const Schema& schema);

// A shape as one word of a row: of each block the sites it leads to, then of each anchor kind,
// target, block and site, "2 3;3;;|call 1234 1 1;loop 0 2 1;".
std::string shape_text(const CodeShape& shape);
// Reads it back, all but the hash; nothing for what is none. Memory is in proportion to the text.
std::optional<CodeShape> parse_shape(std::string_view text);

// Where a body is inlined after its root, and what code is there: of each call site, module and
// function of the callee, and the hash of its code, "5 161 8 4660;9 161 9 17;".
std::string place_text(const InlinedKey& key, std::span<const uint64_t> code);
// Reads it back, after the root and its hash, which `key` and `code` hold; false for what is none.
bool parse_place(std::string_view text, InlinedKey& key, std::vector<uint64_t>& code);

// A call path, outermost frame first: of each the place, module and function, "0 161 5;2 0 0;".
std::string call_path_text(std::span<const PathFrame> path);
// Reads it back; nothing for what is none.
std::optional<std::vector<PathFrame>> parse_call_path(std::string_view text);

}  // namespace uptier::profile
