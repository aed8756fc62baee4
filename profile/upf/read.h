// upf/read.h: finds the parts of a profile file, and reads those that are asked for.
//
// Opening walks over the chunks' headers; the bytes of a group are looked at when it is read. (Only
// without an index its checksum is, since nothing else says whether the group's key is right.)
// What is damaged is left out with a warning that names offset and rule, and the walk goes on at
// the next record of ours, at whatever byte it begins (scan.cc). No count or length is believed;
// memory and time taken are in proportion to the file.
//
// A segment holds what lies between a header and an end of ours; or chunks of IREE's tools alone,
// one behind the other.
//
// Thread: one at a time. The file must outlive the reader and all that it returns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/upf/method.h"
#include "profile/upf/timeline.h"
#include "uptier/profile_calls.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// Some of the methods: from one key to another, which is none of them; without end, all behind it.
struct KeyRange {
  MethodKey from;
  std::optional<MethodKey> end;

  bool contains(const MethodKey& key) const { return from <= key && (!end || key < *end); }
};

// What is known of a group that was read for some range.
struct GroupKeys {
  bool read = false;
  bool ascending = true;       // its methods; else the rest is of no use
  MethodKey first, last;       // of those that are there
  uint64_t start = 0;          // where, unpacked, the range before began
  MethodKey end;               // where that ended when this was read; it may have ended sooner
  uint64_t behind = 0;         // the first method from there on
  uint64_t stop = UINT64_MAX;  // where a method lies, likewise, that nothing behind is read for

  bool meets(const KeyRange& range) const {
    return !read || (stop != 0 && range.from <= last && (!range.end || first < *range.end));
  }
};

class UpfReader {
 public:
  static constexpr size_t kWarnings = 16;

  struct Group {
    uint64_t offset = 0;  // of its record in the file
    std::string_view key;
    uint32_t methods = 0;
    uint16_t format = 0;  // of its entries
    uint64_t module_key = 0;
    ByteSpan record;
  };
  struct UserData {
    std::string_view type;
    std::string_view metadata;
    ByteSpan data;
  };
  struct Segment {
    uint64_t offset = 0;
    bool ours = true;       // otherwise it holds nothing but the next two lines
    bool headed = false;    // it has its header
    bool complete = false;  // and its end
    bool has_info = false;
    ProfileInfo info;
    StringTable strings;
    std::vector<Group> groups;
    std::vector<Instrument> instruments;
    std::vector<UserData> user_data;
    ByteSpan bytes;               // all of it, where it is not ours
    uint64_t foreign_bytes = 0;   // of its chunks in IREE's layout
    ByteSpan log;                 // packed
    ByteSpan timeline;            // packed
    std::vector<RunRecord> past;  // of runs before the last
    std::vector<ByteSpan> calls;  // records of kCallKinds
    std::vector<ByteSpan> inlined;
    uint64_t dropped = 0;  // methods and inlined bodies that the writer left out
  };

  explicit UpfReader(ByteSpan file);

  const std::vector<Segment>& segments() const { return segments_; }
  // The traces (trace_file.h) that stand between segments, each from its header to its end, or as
  // far as it was written.
  const std::vector<ByteSpan>& traces() const { return traces_; }
  // Of bytes of the file.
  uint64_t offset_of(ByteSpan bytes) const {
    return static_cast<uint64_t>(bytes.data() - file_.data());
  }
  bool truncated() const { return truncated_; }
  // The first kWarnings, and how many there were.
  const std::vector<std::string>& warnings() const { return warnings_; }
  uint64_t skipped() const { return skipped_; }
  // Chunks of an unknown type or version, which are passed over: a later writer's or another tool's,
  // and no damage.
  uint64_t unknown() const { return unknown_; }

  // `done` is told of the record of each group that is read from now on, when nobody looks at it any
  // more.
  void when_read(std::function<void(ByteSpan)> done) { done_ = std::move(done); }

  // Reads the methods of a group one by one. A group whose checksum is wrong has none; a method
  // whose sizes are wrong is the last, and makes it false. Either leaves a warning.
  using Visitor = std::function<void(const MethodView&, std::string_view name)>;
  bool read(const Segment& segment, const Group& group, const Visitor& visit);

  // The same of the methods that are wanted, without unpacking the words of the others, whose names
  // `pass_over` gets. `keys` are learned by the first reading of a group, and tell those for later
  // ranges where to begin and to end. `wanted` may become smaller meanwhile.
  void read(const Segment& segment, const Group& group, const KeyRange& wanted, GroupKeys& keys,
            const Visitor& visit, const std::function<void(std::string_view)>& pass_over);

  // Returns what was observed of inlined bodies.
  InlinedBodies inlined(const Segment& segment);

  // Returns what a segment knows of calls.
  CallProfile calls(const Segment& segment);

  // Returns the text of a segment's log, or nothing.
  std::string log(const Segment& segment);
  // Returns a segment's timeline, or an empty one; what is wrong with it leaves a warning.
  Timeline timeline(const Segment& segment);

  // Returns what the runs have left that wrote a segment, the last one at the end. Then what one of
  // them has: as above.
  std::vector<RunRecord> runs(const Segment& segment) const;
  std::string log(const RunRecord& run);
  Timeline timeline(const RunRecord& run);

  void warn(uint64_t offset, const std::string& rule);

 private:
  struct Foreign {
    uint64_t offset = 0;
    uint16_t type = 0;
    bool known = false;     // type and version
    bool searched = false;  // no record of ours begins inside of it
    ByteSpan chunk;
    ByteSpan content;
  };

  // scan.cc
  void scan();
  bool follows(uint64_t at) const;
  uint64_t go_back(uint64_t at);
  uint64_t header_before(uint64_t at);
  uint64_t confirm_groups(uint64_t at);
  void forget_behind(uint64_t offset);
  bool may_repeat(uint64_t bytes);
  uint64_t scan_chunk(uint64_t at);
  uint64_t scan_record(uint64_t at, const IdbHeader& header);
  uint64_t scan_whole(UpfKind kind, uint64_t at, ByteSpan record);
  bool is_of_trace(uint64_t at, uint64_t start) const;
  uint64_t scan_trace(uint64_t at);
  uint64_t next_record(uint64_t from, uint64_t end = UINT64_MAX) const;
  bool is_record(uint64_t at) const;
  ByteSpan record_at(uint64_t at) const;
  bool is_ours(uint64_t at, const IdbHeader& header) const;
  bool is_open() const;
  void close_segment();
  Segment& new_segment(uint64_t at, bool ours);
  Segment& segment_at(uint64_t at, bool starts, uint64_t sequence);

  // scan_foreign.cc
  bool is_foreign(uint64_t at) const;
  uint64_t next_chunk(uint64_t at, uint64_t end) const;
  uint64_t skip_damage(uint64_t at);
  void note_gap(uint64_t at, uint64_t next);
  uint64_t scan_foreign(uint64_t at, const IdbHeader& header);
  Segment& foreign_segment();
  void settle_foreign(uint64_t at);

  // read.cc
  static bool is_whole(ByteSpan record);
  bool is_seal(ByteSpan record) const;
  static bool is_index(ByteSpan payload, const Segment& segment);
  void take_record(UpfKind kind, uint64_t at, ByteSpan record, Segment& segment);
  void take_run(uint64_t at, ByteSpan payload, Segment& segment);
  void take_group(uint64_t at, uint16_t format, ByteSpan record, Segment& segment);
  void take_past(uint64_t at, ByteSpan payload, Segment& segment);
  void take_end(uint64_t at, ByteSpan payload, Segment& segment);
  void take_foreign(Segment& segment);
  void take_user_data(Segment& segment, const Foreign& chunk);
  bool unpack(uint64_t at, ByteSpan packed, Bytes& buffer, ByteSpan& raw);
  bool unpack(const Group& group, ByteSpan& raw);
  void tell_count(const Group& group, uint32_t methods);
  bool read_all(const Segment& segment, const Group& group, const Visitor& visit);
  void read_some(const Segment& segment, const Group& group, const KeyRange& wanted,
                 GroupKeys& keys, const Visitor& visit,
                 const std::function<void(std::string_view)>& pass_over);

  ByteSpan file_;
  std::function<void(ByteSpan)> done_;
  std::vector<Segment> segments_;
  std::vector<ByteSpan> traces_;
  std::vector<std::string> warnings_;
  Bytes unpacked_;               // of the group that is read
  std::vector<uint64_t> words_;  // of the method
  uint64_t skipped_ = 0;
  uint64_t unknown_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t repeated_ = 0;          // bytes that were looked at once more
  Foreign foreign_;                // waits for what follows it
  uint64_t gap_end_ = UINT64_MAX;  // of damage in other tools' chunks
  uint64_t went_back_ = 0;         // from chunks of others that lie before
  uint64_t last_foreign_ = 0;      // where the last chunk of the last segment of others begins
  size_t confirmed_ = 0;           // groups of the last segment that are known to be whole
  bool indexed_ = false;           // the last segment's groups are those of its index
  bool truncated_ = false;
};

}  // namespace uptier::profile
