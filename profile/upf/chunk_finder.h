// upf/chunk_finder.h: what begins at a place of a profile file, by its bytes alone.
//
// Our records have a checksum of their header, so they are found at whatever byte they begin. Chunks
// of other tools have none: a chunk counts as one if it has the magic, lies at a multiple of 16 bytes
// from the chunk before, has a known type and version and a possible head, and another such chunk or
// the end of the file follows. Inside of a file of ours only our records are looked for, because seals
// say what is whole there.
#pragma once

#include "profile/upf/format.h"

namespace uptier::profile {

// Returns whether a record of ours may have content of this size.
bool is_possible_content(uint64_t content);
// Returns whether type and version are those of a chunk that another tool writes.
bool is_known_foreign(const IdbHeader& h);

class ChunkFinder {
 public:
  explicit ChunkFinder(ByteSpan file) : file_(file) {}

  // Returns whether a record of ours starts here: its header checksum is right.
  bool is_record(uint64_t at) const;
  // Returns the record of ours that starts here if its header is right and possible and all of it is
  // there; else nothing.
  ByteSpan record_at(uint64_t at) const;
  // Returns whether a chunk is ours. The content of a file header is open in IREE's database: ours has our
  // name or our checksum.
  bool is_ours(uint64_t at, const IdbHeader& h) const;
  // Returns whether a chunk of another tool begins here, as far as can be told.
  bool is_foreign(uint64_t at) const;
  // Returns the first record of ours from a place on, at any byte; `end` if there is none before it.
  uint64_t next_record(uint64_t from, uint64_t end = UINT64_MAX) const;
  // Returns where the next chunk begins inside of what began at `at`; `end` if none does. `in_ours`:
  // the place lies in a segment of ours.
  uint64_t next_chunk(uint64_t at, uint64_t end, bool in_ours) const;

 private:
  ByteSpan file_;
};

}  // namespace uptier::profile
