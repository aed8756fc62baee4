// idb.h: the chunks of IREE's instrumentation database, byte for byte.
//
//     0   u32 magic "IIDB" | u16 type | u16 version | u64 content length    every chunk
//
//     string table       16  u32 0 | u32 count | count * {u64 offset, u64 length}, text after
//     instrument table   16  u32 0, 0, 0 | u32 count | count * definition, payloads after
//     user data          16  u32 type | u32 metadata | u64 0, data after
//
// Chunks start at multiples of 16 bytes, so padding follows each. Strings are UTF-8 with a NUL
// after them; an id is a string's place in the table, and 0 is the empty one. A string table holds
// until the next; offsets of payloads count from after the definitions. Zeros are checked. That
// strings are UTF-8 is not: names are the host's, and a table is not worth less for one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::profile {

inline constexpr uint32_t kIdbMagic = 0x42444949;  // "IIDB"
inline constexpr size_t kIdbHeader = 16;
inline constexpr uint16_t kIdbFileHeader = 0x0000;
inline constexpr uint16_t kIdbStringTable = 0x0001;
inline constexpr uint16_t kIdbInstrumentTable = 0x0010;
inline constexpr uint16_t kIdbUserData = 0xffff;
inline constexpr size_t kIdbUserDataHead = 16;  // of its content: type, metadata, zeros

struct IdbHeader {
  uint16_t type = 0;
  uint16_t version = 0;
  uint64_t content = 0;  // bytes after the header, without padding

  // Returns the chunk's size, padding included; more than any file has where that would overflow.
  uint64_t size() const {
    constexpr uint64_t kPadding = 15;
    const bool overflows = content > UINT64_MAX - kIdbHeader - kPadding;
    return overflows ? UINT64_MAX : (kIdbHeader + content + kPadding) & ~kPadding;
  }
  // Returns whether all of the chunk is in so many bytes.
  bool fits(uint64_t rest) const { return size() <= rest; }
};

// Reads the header at the front of `bytes`, which holds at least kIdbHeader bytes; fails unless the
// magic is there.
Result<IdbHeader> read_idb_header(ByteSpan bytes);

// Appends the header of a chunk; content and padding follow.
void append_chunk_header(Bytes& out, uint16_t type, uint16_t version, uint64_t content);
// Appends a chunk with this content, padded.
void append_chunk(Bytes& out, uint16_t type, uint16_t version, ByteSpan content);

// Gives strings their ids and writes the table. Takes some 20 bytes a string beside its text: a sum
// of many files has many names.
class StringTableBuilder {
 public:
  StringTableBuilder() { add(""); }
  StringTableBuilder(const StringTableBuilder&) = delete;
  StringTableBuilder& operator=(const StringTableBuilder&) = delete;

  uint32_t add(std::string_view text);
  size_t content_size() const;
  void append_content(Bytes& out) const;
  Bytes content() const;

 private:
  std::string_view text_of(uint32_t id) const;
  size_t place_of(std::string_view text) const;
  void grow();

  std::string texts_;            // by id, a NUL after each
  std::vector<uint64_t> ends_;   // of the texts: of their NULs
  std::vector<uint32_t> slots_;  // a hash table of ids + 1, a power of two long; 0: free
};

// What of a table breaks a rule, item by item.
using IdbDamage = std::vector<std::string>;

// A string table that was read: views into the file.
class StringTable {
 public:
  // Fails if its head is wrong. A view that reaches past the content, a text without a NUL after it
  // and a string 0 that is not empty are left out, and told. Allocates no more than twice the
  // content's size.
  static Result<StringTable> read(ByteSpan content, IdbDamage& damage);

  // Returns nothing for an id that the table does not have, or that is left out.
  std::optional<std::string_view> find(uint32_t id) const;
  size_t size() const { return views_.size(); }

 private:
  std::vector<std::string_view> views_;  // without data where one is left out
};

// One instrument: what it is (type, e.g. "iree.instrument.counter"), which compiler stage asks for
// it, the hash of the code that it stands in, its place there, JSON, and its bytes. Views:
// of the file when it was read.
struct Instrument {
  std::string_view type;
  std::string_view stage;
  std::string_view scope_hash;
  std::string_view scope_key;
  std::string_view metadata;
  ByteSpan payload;
};

Bytes instrument_table(const std::vector<Instrument>& instruments, StringTableBuilder& strings);

// Reads an instrument table under the strings in force. Fails if its head is wrong; an instrument
// that names a string that is none, or whose payload reaches past the table, is left out, and told.
Result<std::vector<Instrument>> read_instruments(ByteSpan content, const StringTable& strings,
                                                 IdbDamage& damage);

}  // namespace uptier::profile
