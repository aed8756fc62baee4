// upf/chunk_finder.h: recognizes the chunks of a profile file by their bytes alone.
//
// Our records have a checksum of their header, so they can be found at any byte. Chunks of other
// tools have none: bytes count as a chunk if they have the magic, lie at a multiple of 16 bytes
// from the previous chunk, have a known type and version and a possible head, and are followed by
// another such chunk or the end of the file. Inside of our files only our records are searched,
// because seals tell which chunks are whole.
#pragma once

#include "profile/upf/format.h"

namespace uptier::profile {

// Returns whether one of our records may have content of this size.
bool is_possible_content(uint64_t content);
// Returns whether another tool writes chunks of this type and version.
bool is_known_foreign(const IdbHeader& h);

class ChunkFinder {
 public:
  explicit ChunkFinder(ByteSpan file) : file_(file) {}

  // Returns whether one of our records starts here: its header checksum is right.
  bool is_record(uint64_t at) const;
  // Returns our record that starts here, if its header is right and possible and all of it is
  // present; otherwise nothing.
  ByteSpan record_at(uint64_t at) const;
  // Returns whether a chunk is ours. IREE's database leaves the content of a file header open: ours
  // has our name or our checksum.
  bool is_ours(uint64_t at, const IdbHeader& h) const;
  // Returns whether a chunk of another tool probably begins here.
  bool is_foreign(uint64_t at) const;
  // Returns our first record from a position on, at any byte; `end` if there is none before it.
  uint64_t next_record(uint64_t from, uint64_t end = UINT64_MAX) const;
  // Returns the start of the next chunk inside of the chunk that began at `at`; `end` if there is
  // none. `in_ours`: the position lies in one of our segments.
  uint64_t next_chunk(uint64_t at, uint64_t end, bool in_ours) const;

 private:
  ByteSpan file_;
};

}  // namespace uptier::profile
