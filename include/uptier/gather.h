// gather.h: data of a host, or of any other part of a program, that goes into profile files.
//
//   sources --gather--> pieces, checked --joined, not copied--> a profile file, or any transport
//
// A source appends pieces of memory to a list. The pieces of a source, one after the other and
// without padding, are whole chunks of IREE's instrumentation database (docs/profiles.md, "The
// file"): string tables, instrument tables and user data. A chunk may consist of any number of
// pieces, so a large payload is written from the memory where it lies, and only headers are made.
// String ids refer to the last string table of the same source.
//
// The runtime checks the pieces of each source. It leaves out a source that breaks a rule, as a
// whole, and says why. Runtime::save_profile writes the pieces to the file of Options::profile;
// Runtime::gather passes them on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uptier {

// Bytes in memory, in the layout of struct iovec: an array of pieces can be passed to writev.
struct Piece {
  const void* data;
  size_t bytes;
};

// An instrument whose payload lies in memory. For "iree.instrument.counter" that is one uint64_t,
// for "iree.instrument.range" {count, sum (16 bytes), minimum, maximum}; profiles add up both. All
// other types are kept byte for byte.
struct GatheredInstrument {
  std::string_view type;
  std::string_view stage;       // who asks for it; "uptier" is reserved
  std::string_view scope_hash;  // hash of the code that contains it
  std::string_view scope_key;   // its place there
  std::string_view metadata;    // JSON, or empty
  std::span<const std::byte> payload;
};

// The pieces that sources have appended.
//
// Borrowed bytes must stay as they are from the call of DataSource::gather until
// DataSource::release; a source copies bytes that may change in between. If memory is refused, or
// arguments break a rule, problem() says so from then on, and the source is left out.
class GatherList {
 public:
  GatherList() = default;
  GatherList(const GatherList&) = delete;
  GatherList& operator=(const GatherList&) = delete;

  // Appends bytes where they lie.
  void borrow(std::span<const std::byte> bytes) noexcept;
  // Appends a copy of bytes.
  void copy(std::span<const std::byte> bytes) noexcept;
  // Returns a copy of bytes, which lives as long as the list, to be borrowed; empty if memory is
  // refused.
  std::span<const std::byte> keep(std::span<const std::byte> bytes) noexcept;
  // Appends a chunk of user data, with a string table for its two texts. Only `data` is borrowed.
  void user_data(std::string_view type, std::string_view metadata,
                 std::span<const std::byte> data) noexcept;
  // Appends a table of instruments, with a string table. Only the payloads are borrowed.
  void instruments(std::span<const GatheredInstrument> instruments) noexcept;
  // Appends a table with one counter for each word of a buffer in which other code counts: a
  // device, generated code, another library. The words are read one by one (relaxed) and copied,
  // so the other code need not stop. `keys` has a key for each word.
  void counters(std::string_view stage, std::string_view scope_hash,
                std::span<const std::string_view> keys, std::span<const uint64_t> words) noexcept;
  // Says that the code with `scope_hash` was made from code with `parent_hash`. A query that finds
  // nothing for the new code is answered with data of its parent (profile_query.h).
  //
  //   stage  the stage of the instruments; empty: all stages
  //   key    the instrument that has this parent; empty: all instruments of the code
  void source_id(std::string_view stage, std::string_view scope_hash, std::string_view key,
                 std::string_view parent_hash) noexcept;

  // Says that the source cannot gather its data, and why: it is left out. `problem` is not copied;
  // it must live until release().
  void fail(const char* problem) noexcept;

  std::span<const Piece> pieces() const noexcept { return pieces_; }
  // Returns the first problem, or null.
  const char* problem() const noexcept { return problem_; }

 private:
  void append(std::vector<std::byte> bytes);

  std::vector<Piece> pieces_;
  std::deque<std::vector<std::byte>> copies_;  // copied pieces point to these
  const char* problem_ = nullptr;
};

// The type of the instruments that GatherList::source_id makes. The payload is the parent's hash.
inline constexpr std::string_view kSourceIdType = "instrument.source.id";

// A part of the program that has data for profile files: a host, a subscriber of events, a guest
// module.
class DataSource {
 public:
  virtual ~DataSource() = default;

  // The name in messages. It must not change.
  virtual std::string_view name() const noexcept = 0;
  // Appends pieces to `list`.
  //
  // It runs on the thread that saves or gathers, or that destroys the runtime, one call at a time,
  // and no lock of the runtime's state is held. It may read the runtime (report(), profile(), ...).
  // It must not save, gather, attach or detach data: such calls are refused. It must not wait for a
  // thread that does.
  virtual void gather(GatherList& list) noexcept = 0;
  // The borrowed bytes of the last gather() are no longer needed. Called once for each gather(), on
  // the same thread.
  virtual void release() noexcept {}
};

// A buffer of counters that other code counts in; see GatherList::counters.
struct CounterBuffer {
  std::string stage;
  std::string scope_hash;
  std::vector<std::string> keys;    // one for each word
  std::span<const uint64_t> words;  // not owned, 8-byte aligned; read at each save
  std::string parent_hash;          // of the code that this code was made from; may be empty
};

// The result of Runtime::gather.
struct GatherReport {
  uint64_t bytes = 0;                // of all pieces
  size_t pieces = 0;                 // their number
  size_t sources = 0;                // of the host that were asked, attached data included
  std::vector<std::string> refused;  // sources that were left out: which, where, which rule
};

}  // namespace uptier
