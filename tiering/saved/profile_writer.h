// ProfileWriter: what this process has seen goes into the file that outlives it.
//
//   save    lock, read what is there by now, fade it, add what this process saw, replace
//   count   lock, write behind the file's end that one more run was like those before
//
// Law of counting: what one run of the file is (counts / weight) stays as it was, so the segment that is
// added has no counts and no weight. Where shares have moved by more than a tenth (run_likeness.h), code
// has changed or is new, or enough runs have been counted so, a run is summed: what the file does not
// say is in it after that many runs at most.
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
#include "tiering/model/saved_method.h"
#include "tiering/saved/mapped_file.h"
#include "tiering/saved/seen_run.h"
#include "uptier/result.h"

namespace uptier::tiering {

// What is known of the file as it was read.
struct ReadFile {
  FileId id;
  uint64_t bytes = 0;
  bool whole = false;          // the file is there, and nothing of it was left out
  size_t counted = 0;          // its runs that are only counted
  uint64_t counted_bytes = 0;  // of the file, which these take

  // Returns whether one more run of so many bytes may only be counted.
  bool takes_more(uint64_t more) const;
};

class ProfileWriter {
 public:
  // `lock_ms`: to wait for another process that holds the file.
  ProfileWriter(std::string path, uint64_t lock_ms) : path_(std::move(path)), lock_ms_(lock_ms) {}

  // Adds it to the file. `decay` is what the counts of earlier runs still count for, which this run
  // asks once: saved again, the file is what it would be had only the last save been, but for what
  // others wrote in between. Waits for the disk if `sync` says so, which may take 10 ms and more.
  Status save(SeenRun seen, double decay, profile::Sync sync);
  // Adds a run that is like those before to those of the file, which stays as it is but for a segment
  // behind its end that has no counts and no weight. Returns false, with nothing written, where save()
  // has to be called instead: the file is not the one that was read, it is not whole, enough runs are
  // only counted there, or this process has saved before. Waits for no disk: if the power fails soon,
  // the run is lost, but nothing of the others.
  Result<bool> count(const SeenRun& seen, const ReadFile& read);

  // Returns what the file is to say of a method of another key whose profile was taken on trust, as
  // it does of those that keep their key.
  static Profile as_before(const SavedMethod& saved, double decay);

 private:
  // What the last save of this process has put in the file.
  struct Written {
    Profile run;
    CallProfile calls;
    UploadId upload;
    uint64_t time = 0;
    uint64_t length_ns = 0;  // of its timeline
    uint64_t weight = ProfileInfo::kRunWeight;
  };

  static UploadId name_of_run(const Profile& run, uint64_t time);
  void leave_out_written(SeenRun& seen, ProfileInfo& file) const;
  std::vector<profile::RunRecord> past_runs(profile::UpfReader& reader, bool again) const;

  std::string path_;
  uint64_t lock_ms_;
  std::unique_ptr<Written> written_;
};

}  // namespace uptier::tiering
