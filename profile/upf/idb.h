// idb.h: the chunks of IREE's instrumentation database, byte for byte.
//
//     0   u32 magic "IIDB" | u16 type | u16 version | u64 content length    every chunk
//
//     string table       16  u32 0 | u32 count | count * {u64 offset, u64 length}, text after
//     instrument table   16  u32 0, 0, 0 | u32 count | count * definition, payloads after
//     user data          16  u32 type | u32 metadata | u64 0, data after
//
// Chunks start at multiples of 16 bytes, so padding follows each. Strings are UTF-8, followed by a
// NUL; an id is a string's index in the table, and 0 is the empty one. A string table is valid
// until the next one; offsets of payloads count from the end of the definitions. Zeros are checked.
// UTF-8 is not checked: names come from the host, and a bad one does not make a table useless.
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

  // Returns the chunk's size, padding included; if that overflows, more than any file has.
  uint64_t size() const {
    constexpr uint64_t kPadding = 15;
    const bool overflows = content > UINT64_MAX - kIdbHeader - kPadding;
    return overflows ? UINT64_MAX : (kIdbHeader + content + kPadding) & ~kPadding;
  }
  // Returns whether the whole chunk fits into `rest` bytes.
  bool fits(uint64_t rest) const { return size() <= rest; }
};

// Reads the header at the front of `bytes`, which holds at least kIdbHeader bytes; fails without
// the magic.
Result<IdbHeader> read_idb_header(ByteSpan bytes);

// Appends the header of a chunk; content and padding follow.
void append_chunk_header(Bytes& out, uint16_t type, uint16_t version, uint64_t content);
// Appends a chunk with this content, padded.
void append_chunk(Bytes& out, uint16_t type, uint16_t version, ByteSpan content);

// Gives strings their ids and writes the table. Takes some 20 bytes for each string in addition to
// its text: a sum of many files has many names.
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
  std::vector<uint64_t> ends_;   // of the texts: positions of their NULs
  std::vector<uint32_t> slots_;  // a hash table of ids + 1, a power of two long; 0: free
};

// The rules that a table breaks, item by item.
using IdbDamage = std::vector<std::string>;

// A string table read from a file: views into the file.
class StringTable {
 public:
  // Fails if its head is wrong. A view that reaches past the content, a text without a NUL after it
  // and a string 0 that is not empty are left out and listed in `damage`. Allocates at most twice
  // the content's size.
  static Result<StringTable> read(ByteSpan content, IdbDamage& damage);

  // Returns nothing for an id that the table does not have, or that was left out.
  std::optional<std::string_view> find(uint32_t id) const;
  size_t size() const { return views_.size(); }

 private:
  std::vector<std::string_view> views_;  // without data if it was left out
};

// One instrument: its type (e.g. "iree.instrument.counter"), the compiler stage that asks for it,
// the hash of the code that contains it, its place there, JSON, and its bytes. The members are
// views, of the file if it was read.
struct Instrument {
  std::string_view type;
  std::string_view stage;
  std::string_view scope_hash;
  std::string_view scope_key;
  std::string_view metadata;
  ByteSpan payload;
};

// Returns the front of an instrument table: its head and definitions. The payloads follow in the
// same order, each padded to a multiple of kPayloadUnit bytes.
Bytes instrument_definitions(const std::vector<Instrument>& instruments,
                             StringTableBuilder& strings);
// Returns a whole table.
Bytes instrument_table(const std::vector<Instrument>& instruments, StringTableBuilder& strings);
inline constexpr size_t kPayloadUnit = 8;
inline constexpr size_t kInstrumentHead = 16;  // bytes before the definitions
inline constexpr size_t kDefinitionBytes =
    40;  // five ids, four bytes of padding, offset and length

// Checks the first kInstrumentHead bytes of an instrument table with this size of content. Returns
// the number of definitions.
Result<uint32_t> read_instrument_head(ByteSpan head, uint64_t content);
// Reads the definition of an instrument: its texts into `read`, and where its payload lies among
// the `data` bytes after the definitions. Returns the rule that it breaks, or null.
struct PayloadPlace {
  uint64_t offset = 0, length = 0;
};
const char* read_definition(ByteSpan definition, uint64_t data, const StringTable& strings,
                            Instrument& read, PayloadPlace& place);

// Reads an instrument table with the current strings. Fails if its head is wrong. An instrument
// that names an invalid string, or whose payload reaches past the table, is left out and listed in
// `damage`.
Result<std::vector<Instrument>> read_instruments(ByteSpan content, const StringTable& strings,
                                                 IdbDamage& damage);

}  // namespace uptier::profile
