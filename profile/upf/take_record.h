// upf/take_record.h: adds single records of a profile file to their segment.
//
// `at` is the position of the record in the file, for warnings. `payload` is the record without its
// header.
#pragma once

#include "profile/upf/segment.h"

namespace uptier::profile {

// A chunk of another tool. The chunk after it decides which segment it belongs to.
struct ForeignChunk {
  uint64_t offset = 0;
  uint16_t type = 0;
  bool known = false;     // type and version
  bool searched = false;  // no record of ours begins inside of it
  ByteSpan chunk;
  ByteSpan content;
};

// Returns whether the content of a record of ours has its checksum.
bool is_whole(ByteSpan record);
// Returns whether a record is the seal of a chunk.
bool seals(ByteSpan record, const ForeignChunk& foreign);
// Returns whether an index lists the groups of a segment, which confirms their keys.
bool is_index(ByteSpan payload, const UpfSegment& segment);

void take_run(uint64_t at, ByteSpan payload, UpfSegment& segment, UpfWarnings& warnings);
void take_group(uint64_t at, uint16_t format, ByteSpan record, UpfSegment& segment,
                UpfWarnings& warnings);
void take_past(uint64_t at, ByteSpan payload, UpfSegment& segment, UpfWarnings& warnings);
void take_end(uint64_t at, ByteSpan payload, UpfSegment& segment, UpfWarnings& warnings);
void take_foreign(UpfSegment& segment, const ForeignChunk& chunk, UpfWarnings& warnings);

}  // namespace uptier::profile
