// PackedDecisions: the last decisions, in their order, as bytes.
//
// Chunks of some 16 KiB, each of which can be read by itself:
//
//   record   head | time | method | location | name [text] | [options] |
//            [calls, samples, iterations] | [inputs] | [action [text], priority] | [reason]
//   head     which inputs, and which of the parts in brackets follow
//
// Numbers have 7 bits per byte. A time is the distance from the record before; options and inputs
// are differences from those before of their kind (packed_snapshot.h); a name or an action is the
// number of a text that came with its first use. What is before the first record of a chunk is a
// PackedState without values. So a record takes some 50 bytes.
//
//   Thread: none of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/base/varint.h"
#include "tiering/policy/logged_decision.h"

namespace uptier::tiering {

// What differences refer to.
struct PackedState {
  uint64_t at_ns = 0;
  PolicyOptions options;
  MethodInputs method;
  ExitSnapshot exit;
  TrialSnapshot trial;
  ValueSnapshot value;
  GuardSnapshot guard;
  SiteSnapshot site;
};

// A value: it can be copied under a lock, and read later.
class PackedDecisions {
 public:
  // Appends a record. `sequence` is above those before. If it throws std::bad_alloc, the record is
  // left out.
  void append(const LoggedDecision& d, uint64_t sequence);
  // Drops the oldest records until there are at most `kept`.
  void keep(uint64_t kept) noexcept;
  uint64_t size() const { return size_; }
  // Returns the bytes of memory that records take.
  size_t bytes() const;

  // Calls f(sequence, const LoggedDecision&) for each record; its texts are valid during the call.
  template <typename F>
  void each(F f) const {
    for (const Chunk& c : chunks_) {
      Reader in(c.bytes);
      for (uint64_t i = 0; i < c.records; ++i) {
        const LoggedDecision d = in.next();
        if (i >= c.dropped) f(c.first + i, d);
      }
    }
  }

 private:
  static constexpr size_t kChunk = 16'384;  // bytes after which a chunk gets no more records

  struct Chunk {
    uint64_t first = 0;  // the number of its first record; the others follow without a gap
    uint64_t records = 0, dropped = 0;
    profile::Bytes bytes;
  };

  class Reader {
   public:
    explicit Reader(profile::ByteSpan bytes) : in_(bytes) {}
    LoggedDecision next();

   private:
    std::string_view text();
    std::string_view word(bool first);

    profile::VarintReader in_;
    PackedState before_;
    std::vector<std::string_view> words_;
  };

  void begin_chunk(uint64_t first);
  void pack_record(const LoggedDecision& d, profile::Bytes& out);
  // Returns the number of a text; `first` says whether it is new.
  uint32_t word(std::string_view text, bool& first);

  std::deque<Chunk> chunks_;
  uint64_t size_ = 0;
  bool open_ = false;  // the last chunk may get more
  PackedState before_;
  std::map<std::string, uint32_t, std::less<>> words_;  // of the last chunk
};

}  // namespace uptier::tiering
