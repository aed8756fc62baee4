// tsv.h: a profile as rows that add up, for databases and for whoever writes ten lines of script.
//
// Law: the rows of two profiles, in any order, are the rows of their merge. So a file of rows may
// be concatenated, sorted, split, or summed up in part by a database, and reading it gives the same
// profile; what profile_from_tsv makes of the rows of one file is that file's profile and info.
// (Sums of a database may wrap where ours stop at 2^64-1.)
//
// A head line, then 14 columns, escaped as ClickHouse's TabSeparated is, numbers unsigned decimals;
// a text that a spreadsheet would take for a formula has a ' in front (text.h, guarded):
//
//   module function method   whose row it is: key and name
//   cfg_hash schema          the shape of its code, and a hash of what is observed of it; a database
//                            adds up rows of one schema, and the reader those of one shape
//   kind site word           slot_kind_name, site and name of the word; or
//                            kind "method": calls, sampled_calls, iterations, bursts,
//                                weight_squares, version, interval, time, behind
//                            kind "file": runs, weight, forgotten, time, interval; engine, host
//                                and schedule, their text in `method`; module, in key_module;
//                                upload, time and hash in key_module and key
//                            kind "shape": of each shape of its code that there is, the text
//                                (shape_text) in `method`; the reader keeps the greatest
//                            kind "call": word "callee", the callee in key_module and key
//                            kind "first_call": positions, runs (thousandths)
//                            kind "time": of a call path, ns and samples in count and estimate; the
//                                path (call_path_text) in `method`; and words "asked" and "squares"
//                            kind "inlined": of a block of a body that is inlined into the method,
//                                whose hash is its own: "block" and "samples"; the place
//                                (place_text) in `method`. Of several codes the reader keeps the
//                                greatest
//                            kind "inlined_" and slot_kind_name: the same of another site of such a
//                                body, with the words of its kind, its entries, and "samples"
//                            word "slots" says that there are slots from `site` on, `key` of them,
//                            with tables of `count` entries; "entry" is of the slot's table;
//                            "sum.0" to "sum.3" are 32 bits each of a wide sum, so that adding them
//                            up adds the sum
//   key_module key           of a table's entry; values are signed, as their 64 bits
//   rule                     what rows of one key become: sum, min and max (signed), greatest, or
//                            same (0 where they differ); the reader knows it from the word
//   count estimate           rows of `sum` whose both are 0 are left out, and extremes of sites
//                            that have seen nothing: they are read as 0
//   voter                    who has seen it, for caps and quorums in a database (docs/fleet.md):
//                            "host NAME", or "run TIME-HASH" of a file that names no host. The
//                            reader does not look at it, and does without the column
#pragma once

#include <string>
#include <string_view>

#include "uptier/profile_file.h"

namespace uptier::profile {

std::string to_tsv(const Profile& profile, const ProfileInfo& info, const CallProfile& calls = {});

// Fails with "line N: rule" for what is no such row, and for methods whose rows do not make the
// schema that they name. `report` says what was dropped, as merge does. Memory is in proportion to
// the text (with 40 MiB for schemas at least).
Result<ProfileFile> profile_from_tsv(std::string_view text);

// Returns whether a text starts with the head line.
bool looks_like_tsv(std::string_view text);

}  // namespace uptier::profile
