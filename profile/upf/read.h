// upf/read.h: finds the parts of a profile file, and reads those that are asked for.
//
// Opening scans the headers of the chunks (scan.h). The bytes of a group are checked when it is read;
// without an index they are checked at once, because nothing else says whether the group's key is
// right. Damaged parts are left out with a warning that names offset and rule. No count or length in
// the file is believed; memory and time are proportional to its size.
//
// A segment is what lies between a header and an end of ours, or a run of chunks of IREE's tools.
//
// Thread: one at a time. The file must outlive the reader and all that it returns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/upf/method.h"
#include "profile/upf/scan.h"
#include "uptier/profile_calls.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// Some of the methods: from one key to another, which is none of them; without end, all after it.
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
  uint64_t stop = UINT64_MAX;  // where a method lies, likewise, that nothing after is read for

  bool meets(const KeyRange& range) const {
    return !read || (stop != 0 && range.from <= last && (!range.end || first < *range.end));
  }
};

class UpfReader {
 public:
  static constexpr size_t kWarnings = UpfWarnings::kMost;

  using Group = UpfGroup;
  using UserData = UpfUserData;
  using Segment = UpfSegment;

  explicit UpfReader(ByteSpan file);

  const std::vector<Segment>& segments() const { return parts_.segments; }
  // The traces (trace_file.h) that stand between segments, each from its header to its end, or as
  // far as it was written.
  const std::vector<ByteSpan>& traces() const { return parts_.traces; }
  // Of bytes of the file.
  uint64_t offset_of(ByteSpan bytes) const {
    return static_cast<uint64_t>(bytes.data() - file_.data());
  }
  bool truncated() const { return parts_.truncated; }
  // The first kWarnings, and how many there were.
  const std::vector<std::string>& warnings() const { return warnings_.texts(); }
  uint64_t skipped() const { return warnings_.count(); }
  // Chunks of an unknown type or version, which are passed over: a later writer's or another tool's,
  // and no damage.
  uint64_t unknown() const { return parts_.unknown; }

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

  void warn(uint64_t offset, const std::string& rule) { warnings_.add(offset, rule); }

 private:
  bool unpack(uint64_t at, ByteSpan packed, Bytes& buffer, ByteSpan& raw);
  bool unpack(const Group& group, ByteSpan& raw);
  void tell_count(const Group& group, uint32_t methods);
  bool read_all(const Segment& segment, const Group& group, const Visitor& visit);
  void read_some(const Segment& segment, const Group& group, const KeyRange& wanted,
                 GroupKeys& keys, const Visitor& visit,
                 const std::function<void(std::string_view)>& pass_over);

  ByteSpan file_;
  UpfWarnings warnings_;
  UpfParts parts_;
  std::function<void(ByteSpan)> done_;
  Bytes unpacked_;               // of the group that is read
  std::vector<uint64_t> words_;  // of the method
};

}  // namespace uptier::profile
