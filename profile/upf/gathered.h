// gathered.h: the pieces of data sources, checked, and the data that they add to a file.
//
// Law: bytes are read where they lie. Only headers, texts, counters and ranges are copied; of all
// other payloads only a hash is kept. So gathering takes memory for the tables, not for the data.
//
// The pieces of all sources are one segment of a profile file, which readers name by a hash of its
// bytes and count once. It begins with a file header whose content is a random number: the data of
// two runs are two segments, even if they are equal.
//
// A process may save repeatedly. Its later save takes away what the earlier one has added
// (`leave_out`), even if other processes have merged the file in between.
#pragma once

#include <array>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/gather.h"
#include "uptier/profile_file.h"
#include "uptier/result.h"

namespace uptier::profile {

// The data of a segment, as far as it is needed to find it again.
struct GatheredSum {
  // Data that is kept byte for byte: texts, size, and a hash of 128 bits. Instruments have five
  // texts, user data has two.
  struct Other {
    std::vector<std::string> texts;
    uint64_t bytes = 0;
    std::array<uint64_t, 2> hash = {};

    friend auto operator<=>(const Other&, const Other&) = default;
  };

  ForeignTables numbers;  // counters and ranges
  std::set<Other> others;
  uint64_t hash = 0;  // the name of the whole segment

  bool empty() const { return numbers.empty() && others.empty(); }
};

// Adds the data of a source's pieces to `sum`. Fails, with offset and rule, if they are not whole
// chunks of kinds that profile files keep; `sum` is then unchanged.
Status add_pieces(std::span<const Piece> pieces, GatheredSum& sum);

// The file header of a segment.
Bytes gathered_header(uint64_t random);
// Returns the hash by which readers name the segment of these pieces.
uint64_t segment_hash(std::span<const Piece> pieces);

// Takes away the data of a segment.
void leave_out(const GatheredSum& sum, ForeignTables& from);

// All that was gathered at one time.
struct Gathered {
  std::vector<Piece> pieces;  // the file header, then those of the lists
  std::deque<GatherList> lists;
  GatheredSum sum;
  size_t sources = 0;
  std::vector<std::string> refused;

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Piece& p : pieces) sum += p.bytes;
    return sum;
  }
};

}  // namespace uptier::profile
