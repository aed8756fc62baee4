// upf/format.h: the chunks of a profile file (.upf).
//
//     file := segment*        segment := header strings seal run group* [instruments seal]
//                                        {user data, seal}* [log] inlined* inlined_sites* [shapes]
//                                        [calls] [order] [time] [timeline] past* index end
//
// All chunks have the layout of IREE's database (idb.h). Ours have types 0x5540..0x555f and are
// sealed like the records of a trace (trace_file.h): the second line of 16 bytes holds two
// checksums and a sequence number that rises by one within the segment. The file header, whose
// content IREE leaves open, is such a record too and starts a segment. Chunks in IREE's layout have
// no room for a checksum: a seal after each covers all of it.
//
// All integers are little-endian; payloads after the 32 bytes of a record's header:
//
//     header   "uptierpf" | u32 version 1 | u32 0
//     seal     u64 size of the chunk before | u64 XXH3 of all its bytes
//     run      u64 time, runs, weight, interval, forgotten, modules, uploads |
//              texts engine, host, schedule | modules * u64 | uploads * {u64 time, u64 hash}
//     group    u32 key (string) | u32 methods | u64 module key | packed entries    version 1
//              u32 key (string) | u32 methods | packed entries                     version 0
//     log      packed text
//     timeline packed, see timeline.h
//     past     u64 time | array of a log's payload | array of a timeline's payload: of the previous
//              run that wrote the file, and of earlier ones; either may be empty. The oldest is first
//     inlined, inlined_sites  packed; upf/inlined.h
//     shapes, calls, order, time  packed; upf/calls.h
//     index    u32 groups | u32 0 | groups * {u64 offset in segment, u32 key, u32 methods}
//     end      u64 methods | u64 groups | u64 methods and inlined bodies that were left out
//
//     packed   u32 size as stored | u32 size | bytes; zstd if the sizes differ
//
// Unpacking costs more than everything else that a merge does with a group. So data read on every
// start and every merge is packed only if that leaves a quarter of it or less (kHotShare: methods
// that hardly ran), and text that is rarely read is packed if that saves an eighth.
//
// A group's key is "Defining;Other1;Other2;": the module of its methods, and the modules of their
// callees, as 16 hexadecimal digits each; a reader that wants a module's methods reads the groups
// that it defines. An entry is one method. In groups of version 1 its numbers have 7 bits per byte
// (varint.h), except u64s and the contents of tables:
//
//     size of the rest | function index, name (string), calls, sampled calls, iterations, bursts,
//     interval, flags, sum of squared weights (with kHasSquares), time (with kHasTime; otherwise the
//     time of the segment's run), guessed calls (with kHasGuessed), tables, words | size of the desc |
//     desc | words counts, words estimates (not with kSameEstimates) | tables
//
// A method has one entry for each of its codes, one after the other (OtherCode).
//
//     desc := version | u64 cfg hash | runs | runs * {kind, first site, count, top}
//     table := u32 kind, u32 site, u64 entries, entries * {u64 module key, value, count, estimate}
//
// Groups of version 0, which are read but no longer written, have entries of fixed fields:
//
//     0    u64 size of the entry
//     8    u64 module key | u32 function index, u32 name (string)
//     24   u64 calls, sampled calls, iterations, bursts, interval
//     64   u32 schema version, u32 flags | u32 words, u32 tables
//     80   desc, as in InstrumentationDesc (events.h), of handle 0
//          words counts, words estimates (not with kSameEstimates): 7 bits per byte, the low ones
//          first, the top bit set in all bytes except a number's last; then zeros up to a multiple of
//          8, then tables
//
// The file's size bounds the stored data: packed bytes unpack to at most 16 times their size, and
// no count is trusted before the counted bytes are present.
#pragma once

#include <cstdint>

#include "profile/base/bytes.h"
#include "profile/trace/trace_file.h"
#include "profile/upf/idb.h"

namespace uptier::profile {

enum class UpfKind : uint16_t {
  kHeader = kIdbFileHeader,
  kSeal = 0x5540,
  kRun = 0x5541,
  kGroup = 0x5542,
  kLog = 0x5543,
  kIndex = 0x5544,
  kInlined = 0x554d,
  kInlinedSites = 0x5545,
  kTimeline = 0x554c,
  kPast = 0x554b,
  kShapes = 0x5548,
  kCalls = 0x5549,
  kOrder = 0x554a,
  kTime = 0x554e,
  kEnd = 0x554f,
};
inline constexpr uint16_t kFirstTraceType = 0x5500;  // the file header of a trace (trace_file.h)
inline constexpr uint16_t kFirstUpfType = 0x5540;
inline constexpr uint16_t kLastUpfType = 0x555f;

inline bool is_trace(const IdbHeader& h) {
  return h.type >= kFirstTraceType && h.type < kFirstUpfType;
}

inline constexpr uint32_t kUpfVersion = 1;
inline constexpr uint64_t kUpfName = 0x6670726569747075;  // "uptierpf"
inline constexpr uint32_t kSameEstimates = 1;    // estimates equal the counts, word by word
inline constexpr uint32_t kHasSquares = 2;       // a sum of squared weights, not 0
inline constexpr uint32_t kHasTime = 4;          // a time other than the segment's; 0 means unknown
inline constexpr uint32_t kIsBehind = 8;         // MethodProfile::behind
inline constexpr uint32_t kHasGuessed = 16;      // MethodProfile::guessed_calls, not 0
inline constexpr uint16_t kUpfEntries = 1;       // version of group chunks
inline constexpr uint64_t kMaxRatio = 16;        // of packed bytes
inline constexpr size_t kPastRuns = 7;           // past runs that a run keeps in the file in
                                                 // addition to its own
inline constexpr size_t kPastBytes = 128 << 10;  // limit of their total size
inline constexpr size_t kColdBytes = 4096;       // larger parts are compressed
inline constexpr size_t kGroupBytes = 256
                                      << 10;  // entries of a group, unless a single one is larger

}  // namespace uptier::profile
