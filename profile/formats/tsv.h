// tsv.h: a profile as rows that add up, for databases and short scripts.
//
// Law: the rows of two profiles, in any order, are the rows of their merge. So a file of rows may
// be concatenated, sorted, split, or partly summed by a database, and reading it gives the same
// profile. profile_from_tsv turns the rows of one file into that file's profile and info. (Sums of
// a database may wrap where ours saturate at 2^64-1.)
//
// A header line, then 14 columns, escaped as in ClickHouse's TabSeparated; numbers are unsigned
// decimals; a text that a spreadsheet would read as a formula has a ' in front (text.h, guarded):
//
//   module function method   the method of the row: key and name
//   cfg_hash schema          the shape of its code, and a hash of its schema; a database
//                            adds up rows of one schema, and the reader those of one shape
//   kind site word           slot_kind_name, site and name of the word; or
//                            kind "method": calls, sampled_calls, guessed_calls, iterations, bursts,
//                                weight_squares, version, interval, time, behind
//                            kind "file": runs, weight, forgotten, time, interval; engine, host
//                                and schedule, their text in `method`; module, in key_module;
//                                upload, time and hash in key_module and key
//                            kind "shape": for each shape of its code, the text (shape_text) in
//                                `method`; the reader keeps the greatest
//                            kind "call": word "callee", the callee in key_module and key
//                            kind "first_call": positions, runs (thousandths)
//                            kind "time": ns and samples of a call path, in count and estimate; the
//                                path (call_path_text) in `method`; and words "asked" and "squares"
//                            kind "inlined": a block of a body that is inlined into the method, with
//                                the method's hash: words "block" and "samples"; the place
//                                (place_text) in `method`. Of several codes the reader keeps the
//                                greatest
//                            kind "inlined_" and slot_kind_name: the same for another site of such a
//                                body, with the words of its kind, its entries, and "samples"
//                            word "slots" means that there are `key` slots from `site` on, with
//                            tables of `count` entries; "entry" belongs to the slot's table; "sum.0"
//                            to "sum.3" are 32 bits each of a wide sum, so that adding them up adds
//                            the sum
//   key_module key           of a table's entry; values are signed, as their 64 bits
//   rule                     how rows of one key combine: sum, min and max (signed), greatest, or
//                            same (0 if they differ); the reader knows it from the word
//   count estimate           rows of `sum` with both 0 are left out, and so are extremes of sites
//                            that have seen nothing: they are read as 0
//   voter                    who has seen it, for caps and quorums in a database (docs/fleet.md):
//                            "host NAME", or "run TIME-HASH" for a file that names no host. The
//                            reader ignores the column and does not require it
#pragma once

#include <string>
#include <string_view>

#include "uptier/profile_file.h"

namespace uptier::profile {

std::string to_tsv(const Profile& profile, const ProfileInfo& info, const CallProfile& calls = {});

// Fails with "line N: rule" for invalid rows, and for methods whose rows do not form the schema
// that they name. `report` says what was dropped, as in merge. Memory is proportional to the text
// (but at least 40 MiB for schemas).
Result<ProfileFile> profile_from_tsv(std::string_view text);

// Returns whether a text starts with the header line.
bool looks_like_tsv(std::string_view text);

}  // namespace uptier::profile
