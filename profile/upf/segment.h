// upf/segment.h: the parts of a profile file, as they lie in its bytes.
//
// All spans and texts point into the file, which must outlive them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/upf/format.h"
#include "profile/upf/timeline.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// A record with methods.
struct UpfGroup {
  uint64_t offset = 0;  // of its record in the file
  std::string_view key;
  uint32_t methods = 0;
  uint16_t format = 0;  // of its entries
  uint64_t module_key = 0;
  ByteSpan record;
};
// Data of another tool.
struct UpfUserData {
  std::string_view type;
  std::string_view metadata;
  ByteSpan data;
};
// One run that was written, or one sum.
struct UpfSegment {
  uint64_t offset = 0;
  bool ours = true;       // otherwise it holds only the next two lines
  bool headed = false;    // has its header
  bool complete = false;  // has its end
  bool has_info = false;
  ProfileInfo info;
  StringTable strings;
  std::vector<UpfGroup> groups;
  std::vector<Instrument> instruments;
  std::vector<UpfUserData> user_data;
  ByteSpan bytes;               // the whole segment, if it is not ours
  uint64_t foreign_bytes = 0;   // of its chunks in IREE's layout
  ByteSpan log;                 // packed
  ByteSpan timeline;            // packed
  std::vector<RunRecord> past;  // of runs before the last
  std::vector<ByteSpan> calls;  // records of kCallKinds
  std::vector<ByteSpan> inlined;
  uint64_t dropped = 0;  // methods and inlined bodies that the writer left out
};

// The damages found, in order. Keeps the first texts and counts all.
class UpfWarnings {
 public:
  static constexpr size_t kMost = 16;

  void add(uint64_t offset, const std::string& rule) {
    ++count_;
    if (texts_.size() == kMost) return;
    texts_.push_back("offset " + std::to_string(offset) + ": " + rule);
  }
  const std::vector<std::string>& texts() const { return texts_; }
  uint64_t count() const { return count_; }

 private:
  std::vector<std::string> texts_;
  uint64_t count_ = 0;
};

}  // namespace uptier::profile
