// upf/segment_writer.h: writes a segment whose methods are added one after the other.
//
// Groups are packed as soon as they are full. The chunks before them (above all the strings, which
// IREE's layout requires before their users) are known only at the end. So groups wait, in memory
// or in a file (spill.h), and the segment is returned in pieces; a caller that only writes them
// need not join them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/base/spill.h"
#include "profile/upf/format.h"
#include "profile/upf/timeline.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

using uptier::CallProfile;
using uptier::ForeignTables;
using uptier::InlinedBodies;
using uptier::MethodProfile;
using uptier::ProfileInfo;

// The bytes of a segment, in order.
struct SegmentPieces {
  Bytes front;
  std::vector<Bytes> groups;
  std::optional<Spill> spilled;  // groups that waited in a file; `groups` is then empty
  Bytes behind;

  // Passes all of it to `take` until that returns an errno. Returns that, or an errno of reading,
  // or 0.
  int each(const std::function<int(ByteSpan)>& take) const;
  // Returns all of it; nothing may be in a file.
  Bytes joined() &&;
};

class SegmentWriter {
 public:
  // `time`: methods of this time have none in their entries, so readers take it from the segment's
  // run; either 0, or the time in the `info` of `finish`. Groups wait in the file, if there is one.
  explicit SegmentWriter(uint64_t time, std::optional<Spill> spill = {})
      : time_(time), spill_(std::move(spill)) {}
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  // Adds a method, in ascending order of keys, and other code of it after it. A method that breaks
  // a rule, or does not fit into a record, is counted as left out.
  void add(const MethodProfile& method);
  void drop() { ++dropped_; }
  void add(const InlinedBodies& bodies);
  // Must live until the segment is finished.
  void add(const ForeignTables& foreign);

  // Returns the bytes of the segment; the writer must not be used afterwards. `calls` and `dropped`
  // may be null; the latter receives the number of left-out items.
  SegmentPieces finish(const ProfileInfo& info, std::string_view log, const Timeline& timeline,
                       const CallProfile* calls, std::span<const RunRecord> past,
                       uint64_t* dropped);

 private:
  struct Open {
    Bytes entries;
    uint32_t methods = 0;
    uint64_t module_key = 0;
  };
  struct Group {
    uint32_t key = 0;
    uint32_t methods = 0;
    uint64_t bytes = 0;  // of its record
  };

  void close(const std::string& key, Open& open);
  void add_instruments(const MethodProfile& method);
  void record(UpfKind kind, ByteSpan payload, uint16_t version = 0);
  void seal_from(size_t start);
  void string_table();
  void sealed_chunk(uint16_t type, ByteSpan content);
  void packed_record(UpfKind kind, ByteSpan raw);

  uint64_t time_;
  StringTableBuilder strings_;
  std::map<std::string, Open> open_;
  std::vector<Group> groups_;
  std::vector<Bytes> records_;  // of groups_; or
  std::optional<Spill> spill_;  // these
  std::vector<Bytes> inlined_;
  std::vector<Bytes> inlined_sites_;
  std::deque<std::string> texts_;  // instruments hold views of them
  std::deque<Bytes> payloads_;     // likewise
  std::vector<Instrument> instruments_;
  std::vector<Bytes> user_data_;
  uint64_t methods_ = 0;
  uint64_t dropped_ = 0;
  uint32_t sequence_ = 0;
  Bytes out_;  // the growing piece
};

}  // namespace uptier::profile
