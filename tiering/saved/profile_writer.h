// ProfileWriter: writes the data of this process into the file that outlives it.
//
//   save    lock, read the current file, fade it, add the data of this process, replace the file
//   count   lock, append to the file that one more run was like those before
//
// Law of counting: the average run of the file (counts / weight) stays the same, so the appended
// segment has no counts and no weight. A run is summed instead if shares have moved by more than a
// tenth (run_likeness.h), if code has changed or is new, or if enough runs have been counted. So
// new data is in the file after that many runs at most.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profile/upf/file.h"
#include "profile/upf/read.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/saved_method.h"
#include "tiering/saved/mapped_file.h"
#include "tiering/saved/seen_run.h"
#include "uptier/result.h"

namespace uptier::tiering {

// The state of the file when it was read.
struct ReadFile {
  FileId id;
  uint64_t bytes = 0;
  bool whole = false;          // the file exists, and nothing of it was left out
  size_t counted = 0;          // number of its runs that are only counted
  uint64_t counted_bytes = 0;  // bytes of these runs in the file

  // Says whether one more run of so many bytes may be only counted.
  bool takes_more(uint64_t more) const;
};

class ProfileWriter {
 public:
  // `lock_ms`: how long to wait for another process that holds the file.
  ProfileWriter(std::string path, uint64_t lock_ms) : path_(std::move(path)), lock_ms_(lock_ms) {}

  // Adds the run to the file. `decay` is the factor for the counts of earlier runs; it is applied
  // once per run: if this run is saved again, the file is as if only the last save had been made,
  // except for data that other processes have written in between. Waits for the disk if `sync` says
  // so, which may take 10 ms and more.
  Status save(SeenRun seen, double decay, profile::Sync sync) UPTIER_REQUIRES(state_lock);
  // Counts a run that is like those before: only appends a segment without counts and weight to the
  // file. Returns false, without writing anything, if save() must be called instead: the file is
  // not the one that was read, it is not whole, enough runs are only counted there, or this process
  // has saved before. Does not wait for the disk: if the power fails soon, this run is lost, but no
  // data of other runs.
  Result<bool> count(const SeenRun& seen, const ReadFile& read) UPTIER_REQUIRES(state_lock);

  // Returns the profile to save for a method with a new key whose profile was trusted: scaled like
  // the profiles of trusted methods that keep their key.
  static Profile as_before(const SavedMethod& saved, double decay);

 private:
  // The data that the last save of this process wrote.
  struct Written {
    Profile run;
    CallProfile calls;
    UploadId upload;
    uint64_t time = 0;
    uint64_t length_ns = 0;  // of its timeline
    uint64_t weight = ProfileInfo::kRunWeight;
  };

  static UploadId name_of_run(const Profile& run, uint64_t time);
  void leave_out_written(SeenRun& seen, ProfileInfo& file) const UPTIER_REQUIRES(state_lock);
  std::vector<profile::RunRecord> past_runs(profile::UpfReader& reader, bool again) const
      UPTIER_REQUIRES(state_lock);

  std::string path_;
  uint64_t lock_ms_;
  std::unique_ptr<Written> written_;
};

}  // namespace uptier::tiering
