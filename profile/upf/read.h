// upf/read.h: finds the parts of a profile file, and reads parts on request.
//
// Opening scans the headers of the chunks (scan.h). The bytes of a group are checked when it is
// read; if there is no index, they are checked at once, because nothing else confirms the group's
// key. Damaged parts are left out with a warning that names offset and rule. No count or length in
// the file is trusted; memory and time are proportional to its size.
//
// A segment is the part between our header and our end, or a run of chunks of IREE's tools.
//
// Thread: one at a time. The file must outlive the reader and everything that it returns.
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

// A range of methods: from one key up to another, exclusive; without end, all after `from`.
struct KeyRange {
  MethodKey from;
  std::optional<MethodKey> end;

  bool contains(const MethodKey& key) const { return from <= key && (!end || key < *end); }
};

// The facts about a group that was read for some range.
struct GroupKeys {
  bool read = false;
  bool ascending = true;  // its methods are in order; otherwise the rest is meaningless
  MethodKey first, last;  // of its methods
  uint64_t start = 0;     // unpacked position at which the previous range began
  MethodKey end;        // the end of that range when the group was read; it may have ended earlier
  uint64_t behind = 0;  // position of the first method from there on
  uint64_t stop = UINT64_MAX;  // position of a broken method; nothing after it is read

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
  // The traces (trace_file.h) between segments, each from its header to its end, or as far as it
  // was written.
  const std::vector<ByteSpan>& traces() const { return parts_.traces; }
  // The offset of bytes of the file.
  uint64_t offset_of(ByteSpan bytes) const {
    return static_cast<uint64_t>(bytes.data() - file_.data());
  }
  bool truncated() const { return parts_.truncated; }
  // The first kWarnings, and the number of all.
  const std::vector<std::string>& warnings() const { return warnings_.texts(); }
  uint64_t skipped() const { return warnings_.count(); }
  // Chunks of an unknown type or version, which are skipped: they come from a later writer or
  // another tool, and are not damage.
  uint64_t unknown() const { return parts_.unknown; }

  // Calls `done` with the record of each group that is read from now on, when its bytes are no
  // longer needed.
  void when_read(std::function<void(ByteSpan)> done) { done_ = std::move(done); }

  // Reads the methods of a group one by one. A group whose checksum is wrong has none; a method
  // whose sizes are wrong is the last one, and makes the result false. Both leave a warning.
  using Visitor = std::function<void(const MethodView&, std::string_view name)>;
  bool read(const Segment& segment, const Group& group, const Visitor& visit);

  // The same for the wanted methods, without unpacking the words of the others, whose names go to
  // `pass_over`. The first reading of a group fills in `keys`, which tell later ranges where to
  // begin and to end. `wanted` may become smaller meanwhile.
  void read(const Segment& segment, const Group& group, const KeyRange& wanted, GroupKeys& keys,
            const Visitor& visit, const std::function<void(std::string_view)>& pass_over);

  // Returns the observations of inlined bodies.
  InlinedBodies inlined(const Segment& segment);

  // Returns a segment's data about calls.
  CallProfile calls(const Segment& segment);

  // Returns the text of a segment's log, or nothing.
  std::string log(const Segment& segment);
  // Returns a segment's timeline, or an empty one; an error leaves a warning.
  Timeline timeline(const Segment& segment);

  // Returns the records of the runs that wrote a segment, the last one at the end. The functions
  // after it read one of them, as above.
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
  Bytes unpacked_;               // of the current group
  std::vector<uint64_t> words_;  // of the current method
};

}  // namespace uptier::profile
