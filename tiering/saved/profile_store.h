// ProfileStore: the profile of earlier processes, and where this one's goes.
//
//   open: read the file --> find: read the groups of a module when its first method is asked for
//   save: lock, read what is there by now, fade it, add what this process saw, replace
//         (save_profile.cc)
//   count: lock, write behind the file's end that one more run was like those before
//         (count_run.cc)
//
// Two processes that end together do not lose each other's: each reads what the other wrote, or
// finds the file as it has read it. The lock is on the file itself (file_lock.h).
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "profile/upf/file.h"
#include "profile/upf/read.h"
#include "tiering/model/saved_method.h"
#include "tiering/saved/mapped_file.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"
#include "uptier/report.h"

namespace uptier::tiering {

// Executions of blocks, a run, below which asking the policy is not worth describing a method
// twice.
inline constexpr double kLeastSavedMass = 256;

// What this process has seen up to now, for the file.
struct SeenRun {
  // What a save has to know of a method.
  struct Fate {
    bool keep = false;  // taken on trust: this run is one more that was like those before
    uint64_t cfg_hash = 0;
  };

  Profile run;
  CallProfile calls;
  std::map<MethodKey, Fate> fates;
  ProfileInfo info;
  std::string log;
  profile::Timeline timeline;
};

// Returns the estimated executions of a method's blocks.
double block_mass(const MethodProfile& p);

class ProfileStore {
 public:
  // Opens the file that `pattern` names, which need not exist; a link stands for what it leads to.
  // What is wrong with it is in report(). `lock_ms`: to wait for another process that holds it.
  explicit ProfileStore(const std::string& pattern, uint64_t lock_ms = 5000);

  // Returns what is known of a method, or null. Without a method of that key, one of another module
  // with the same name, where only one has it: whose code has to be the same, see is_of. Of several
  // codes that there are of it the one of this hash, or else that of the latest run.
  std::unique_ptr<SavedMethod> find(const MethodKey& key, const std::string& name,
                                    uint64_t cfg_hash);

  // Says whether find() would return something.
  bool knows(const MethodKey& key, const std::string& name);
  // Returns the executions of blocks of what find() would return, in one run; 0 for null.
  double mass(const MethodKey& key, const std::string& name);
  // Returns how much a method of that very key ran in one run of the file, in executions of blocks
  // and calls; 0: it is not there. Cost: the method's counts, and the first of a module reads it.
  double weight(const MethodKey& key);

  // Returns the calls that the file knows, of all that counts. Cost: the first call reads them.
  const CallProfile& calls();
  // Returns what it knows of inlined bodies, likewise.
  const InlinedBodies& inlined();
  // Returns the words of the counts of a method that weight() has found: how large it is, about.
  uint32_t size_of(const MethodKey& key) const;

  // Returns the shape of the code that the profile under this key is of; empty if it is not known.
  const CodeShape& shape(const MethodKey& from);

  // profile_query.h; of all that counts of the file.
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key);

  // Adds it to the file. `decay` is what the counts of earlier runs still count for, which this run
  // asks once: saved again, the file is what it would be had only the last save been, but for what
  // others wrote in between. Waits for the disk if `sync` says so, which may take 10 ms and more.
  Status save(SeenRun seen, double decay, profile::Sync sync);

  // Says whether a run is like one of those that were read: `seen` has what it has watched, all else
  // is as its fates say. So its counts would change no share by much. Cost: all counts, once.
  bool has_learnt_nothing(const SeenRun& seen) const;
  // Adds such a run to those of the file, which stays as it is but for a segment behind its end that
  // has no counts and no weight. Returns false, with nothing written, where save() has to be
  // called instead: the file is not the one that was read, it is not whole, enough runs are only
  // counted there, or this process has saved before. Waits for no disk: if the power fails soon, the
  // run is lost, but nothing of the others.
  Result<bool> count(const SeenRun& seen);

  // Returns what the file is to say of a method of another key whose profile was taken on trust, as
  // it does of those that keep their key.
  static Profile as_before(const SavedMethod& saved, double decay);

  // Returns who this is and when.
  static ProfileInfo info_now();

  SavedReport& report() { return report_; }
  const SavedReport& report() const { return report_; }

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
  void open();
  void note_segments();
  bool takes_more(uint64_t bytes) const;
  void leave_out_written(SeenRun& seen, ProfileInfo& file) const;
  std::vector<profile::RunRecord> past_runs(profile::UpfReader& reader, bool again) const;
  const MethodProfile* look(const MethodKey& key, const std::string& name, bool& recovered);
  void load(uint64_t module_key);
  void load_others();
  void load_segments(const std::function<bool(std::string_view key)>& wanted, Profile& into);

  std::string path_;
  uint64_t lock_ms_;
  MappedFile file_;
  std::unique_ptr<profile::UpfReader> reader_;
  std::set<size_t> summed_;  // the segments that count
  std::set<uint64_t> loaded_;
  Profile saved_;                    // of the modules that were asked for
  std::unique_ptr<Profile> others_;  // all of the file, once a module was not in it
  std::map<std::string, const MethodProfile*> by_name_;  // of others_; null where two have it
  std::unique_ptr<CallProfile> calls_;                   // of the file, once asked for
  std::unique_ptr<InlinedBodies> inlined_;               // likewise
  double runs_ = 1;
  bool whole_ = false;          // the file is there, and nothing of it was left out
  size_t counted_ = 0;          // its runs that are only counted
  uint64_t counted_bytes_ = 0;  // of the file, which these take
  std::unique_ptr<Written> written_;
  SavedReport report_;
};

}  // namespace uptier::tiering
