// events.h: the contents of the events of a trace.
//
// Desc, version 1, in 8-byte regions (shape: method handle, then bytes):
//
//     method handle | cfg hash | u32 words of data, u32 runs
//     per run: u32 kind, u32 words each | u32 first site, u32 count | u32 top, u32 0
//
// Desc of a body with adaptive rates, version 2: the same, and after the runs the Draw of each
// slot: two bits per slot, the first slot in the lowest bits, in words of 32 slots.
//
// Desc of an inlined body, version 2^16 + 1: the same for the inlined method, and after the runs
// the method that contains it, and the calls that lead to it, the outermost first:
//
//     method handle | u32 calls, u32 0 | per call: u32 site, u32 0 | method handle of the callee
//
// If it has slots other than blocks, version 2^17 + 1: the same.
//
// Such an id is not part of the method's profile: see InlinedBody in include/uptier/profile.h.
//
// Data, version 1: u64 words as in data.h, of shape 00 except method handles. A run-length list is
// bounded by the data shape that comes with it, so a small Desc cannot ask for a large schema.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "profile/data/estimate.h"
#include "profile/data/schema.h"
#include "uptier/trace.h"

namespace uptier::profile {

// The format of InstrumentationDesc::desc; the same number as the schema's version.
inline constexpr uint32_t kDescVersion = Schema::kVersion;
inline constexpr uint32_t kDrawnDescVersion = 2;
inline constexpr uint32_t kInlinedDescVersion = 1u << 16 | Schema::kVersion;
inline constexpr uint32_t kInlinedSitesDescVersion = 1u << 17 | Schema::kVersion;

// The kinds of records, as numbers of the file format. Kinds below are chunk types; a reader skips
// those that it does not know.
enum class RecordKind : uint16_t {
  kFileHeader = 0x5500,
  kProvenance = 0x5501,
  kMethodDetails = 0x5502,
  kBulkType = 0x5503,
  kDesc = 0x5504,
  kData = 0x5505,
  kFlush = 0x5506,
  kFirstCall = 0x5507,
  kEnd = 0x550f,
};

// Returns "provenance", "method", "type", "desc", "data", "flush", "first call", "file
// header", "end" or "unknown".
std::string_view record_kind_name(RecordKind kind);

RecordKind kind_of(const TraceEvent& event);

// --- shapes

// Returns the number of shape bytes for `regions` regions.
constexpr size_t shape_bytes(size_t regions) { return (regions + 3) / 4; }

// Returns the content type of region i; i must be covered by the shape.
Region region_at(ByteSpan shape, size_t i);
void set_region(Bytes& shape, size_t i, Region region);

// Fails unless `shape` describes exactly `size` bytes: a multiple of 8, two bits for each region,
// no reserved region, and zeros after the last.
Status check_shape(ByteSpan shape, size_t size);

// --- schemas and data

// Describes the counts of one id with a valid schema. `draws`: by slot, or empty; the version is 2
// if any of them is known.
InstrumentationDesc make_desc(uint64_t id, uint64_t method_handle, const Schema& schema,
                              std::span<const Draw> draws = {});

// The same for an inlined body; the last callee of `path` is its method.
struct InlinedStep {
  SiteId site = 0;
  uint64_t callee = 0;  // handle
};
InstrumentationDesc make_inlined_desc(uint64_t id, uint64_t root, std::span<const InlinedStep> path,
                                      const Schema& schema);

// Returns whether a desc describes an inlined body.
constexpr bool is_inlined_desc(uint32_t version) {
  return version == kInlinedDescVersion || version == kInlinedSitesDescVersion;
}

// Returns whether schema_of knows the format.
constexpr bool is_known_desc(uint32_t version) {
  return version == kDescVersion || version == kDrawnDescVersion || is_inlined_desc(version);
}

// Returns the schema of a Desc of a known version; fails if any part of the Desc differs from the
// output of make_desc or make_inlined_desc.
Result<Schema> schema_of(const InstrumentationDesc& desc);

// Returns the Draw of each slot, for a Desc that schema_of accepts; empty if it does not have them.
std::vector<Draw> draws_of(const InstrumentationDesc& desc, const Schema& schema);

// The place where a body is inlined, from a Desc that schema_of accepts; the root is 0 if the Desc
// does not describe an inlined body.
struct InlinedPlace {
  uint64_t root = 0;  // handle
  std::vector<InlinedStep> path;
};
InlinedPlace place_of(const InstrumentationDesc& desc);

// Reads the runs of a desc, of 24 bytes each.
Result<std::vector<SlotRun>> take_runs(ByteReader& in, uint32_t count);

// Returns the handle in the first region; the desc must have one.
uint64_t handle_of(const InstrumentationDesc& desc);

// Returns the CFG hash of a Desc that schema_of accepts.
uint64_t cfg_hash_of(const InstrumentationDesc& desc);

// `words` are the words of the data; see data.h for schemas with tables.
InstrumentationData make_data(uint64_t id, std::span<const uint64_t> words);

// Returns the words of a Data whose length is a multiple of 8.
std::vector<uint64_t> words_of(const InstrumentationData& data);

// --- payloads

// Appends the bytes of an event, a multiple of 8.
void encode(const TraceEvent& event, Bytes& out);

// Decodes the bytes of one event, followed by fewer than 16 zeros of padding. Fails, naming the
// rule, for any bytes that encode would not write; the validator checks the meaning of shapes.
Result<TraceEvent> decode(RecordKind kind, ByteSpan payload);

}  // namespace uptier::profile
