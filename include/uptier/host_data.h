// host_data.h: the part of a runtime that takes data of the host for profiles.
//
//   attach_data, import_counters --> asked at each save_profile() and gather() --> detach_data
//
// gather.h has the rules of sources and pieces, docs/profiles.md those of files and merges.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "uptier/gather.h"
#include "uptier/result.h"

namespace uptier {

class HostData {
 public:
  virtual ~HostData() = default;

  // Adds data of the host to the profiles of this runtime: to the file of Options::profile, and to
  // gather(). `data` is not copied: it is written from where it lies, and must stay as it is until
  // it is detached or the runtime has been destroyed. Files keep it as user data of this type; a
  // merge of files with equal data has it once (docs/profiles.md). Returns a number for
  // detach_data.
  //
  //   type      names the kind of data, e.g. "my.tool.table"
  //   metadata  text for readers, e.g. JSON; may be empty
  //
  // Thread: any. Errors: kInvalidArgument for an empty type, and while data is gathered on this
  // thread. Cost: a lock.
  virtual Result<uint64_t> attach_data(std::string_view type, std::string_view metadata,
                                       std::span<const std::byte> data) {
    (void)type, (void)metadata, (void)data;
    return Error{ErrorCode::kUnsupported, "attach_data: this runtime writes no profiles"};
  }
  // Makes `source` be asked for data whenever the profile is saved or gathered (gather.h). It is
  // not owned, and must live until it is detached or the runtime has been destroyed. The destructor
  // asks it if it saves the profile. Errors: also kInvalidArgument if it is attached already.
  virtual Status attach_data(DataSource& source) {
    (void)source;
    return Error{ErrorCode::kUnsupported, "attach_data: this runtime writes no profiles"};
  }
  // Adds the counters of other code: of a device, of code that the host generates, of a library.
  // They are counters in the layout of IREE's database, which merges add up and queries find by
  // stage, scope and key. Each save reads them again: buffer.words must live until detach_data, or
  // until the runtime has been destroyed. Thread: any. Errors: kInvalidArgument if there are not as
  // many keys as words, for an empty or reserved stage, and for words that are not aligned.
  virtual Result<uint64_t> import_counters(CounterBuffer buffer) {
    (void)buffer;
    return Error{ErrorCode::kUnsupported, "import_counters: this runtime writes no profiles"};
  }
  // Detaches data or a source: it is not used by later saves. When this returns, no bytes of it are
  // being read. Data that is in the file stays there, except that a later save of this process
  // removes what its earlier save had added. Errors: kNotFound; kInvalidArgument while data is
  // gathered on this thread.
  virtual Status detach_data(uint64_t data) {
    (void)data;
    return Error{ErrorCode::kNotFound, "detach_data: this runtime writes no profiles"};
  }
  virtual Status detach_data(DataSource& source) {
    (void)source;
    return Error{ErrorCode::kNotFound, "detach_data: this runtime writes no profiles"};
  }
  // Passes the profile of this process and the data of all sources to `take`, as pieces that form
  // the bytes of a profile file: to write it elsewhere, or to send it. Works without
  // Options::profile, and writes no file. The pieces are valid until `take` returns.
  // Returns the error of `take`, if it returns one. Flushes the calling thread first. Thread: any,
  // but not from a host function, from `build`, or from a source. Cost: as for profile(), and a
  // hash of all data.
  virtual Result<GatherReport> gather(
      const std::function<Status(std::span<const Piece> pieces)>& take) {
    (void)take;
    return Error{ErrorCode::kUnsupported, "gather: this runtime has no profiles"};
  }
};

}  // namespace uptier
