// tsv_rows.h: shared by the writer and the reader of rows. See tsv.h.
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
// The header line of rows without voters.
inline constexpr std::string_view kTsvHeadVoterless =
    kTsvHead.substr(0, kTsvHead.size() - std::string_view("\tvoter").size());

// The prefix of the kind for a site of an inlined body.
inline constexpr std::string_view kInlinedKind = "inlined_";

// A wide sum is four limbs, each a word of its own: its name, a dot and a digit.
inline constexpr unsigned kLimbs = 4;
inline constexpr unsigned kLimbBits = 32;

// Returns the name of a schema: rows with the same name add up.
uint64_t schema_name(const Schema& schema);

// A shape as one word of a row: for each block its successors, then for each anchor kind, target,
// block and site, "2 3;3;;|call 1234 1 1;loop 0 2 1;".
std::string shape_text(const CodeShape& shape);
// Reads it back, except the hash; nothing if it is invalid. Memory is proportional to the text.
std::optional<CodeShape> parse_shape(std::string_view text);

// The place of an inlined body relative to its root, and its code: for each call its site, module
// and function of the callee, and the hash of the callee's code, "5 161 8 4660;9 161 9 17;".
std::string place_text(const InlinedKey& key, std::span<const uint64_t> code);
// Reads it back and appends it to the root and its hash in `key` and `code`; false if it is
// invalid.
bool parse_place(std::string_view text, InlinedKey& key, std::vector<uint64_t>& code);

// A call path, outermost frame first: place, module and function of each, "0 161 5;2 0 0;".
std::string call_path_text(std::span<const PathFrame> path);
// Reads it back; nothing if it is invalid.
std::optional<std::vector<PathFrame>> parse_call_path(std::string_view text);

}  // namespace uptier::profile
