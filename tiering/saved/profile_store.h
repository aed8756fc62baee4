// ProfileStore: the profile of earlier processes, and where this one's goes.
//
//   open: map the file --> find: read the groups of a module when its first method is asked for
//   save: lock, read what is there by now, fade it, add what this process saw, replace
//         (save_profile.cc)
//
// Two processes that end together do not lose each other's: each reads what the other wrote. The
// lock is on the file itself; who gets the lock of a file that has been replaced meanwhile takes
// the new one's.
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
#include "tiering/saved/mapped_file.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"
#include "uptier/report.h"

namespace uptier::tiering {

// What the file has of one method.
struct SavedMethod {
  MethodProfile profile;
  MethodKey from;          // under which the file has it
  double runs = 1;         // that it stands for
  bool recovered = false;  // it is that of a method of another module
  bool trusted = false;    // code was made from it alone
  bool drifted = false;    // and turned out not to be what happens now
};

// Executions of blocks, a run, below which asking the policy is not worth describing a method
// twice.
inline constexpr double kLeastSavedMass = 256;

class ProfileStore {
 public:
  // Opens the file that `pattern` names, which need not exist. What is wrong with it is in
  // report().
  explicit ProfileStore(const std::string& pattern);

  // Returns what is known of a method, or null. Without a method of that key, one of another module
  // with the same name, where only one has it: whose code has to be the same, see is_of.
  std::unique_ptr<SavedMethod> find(const MethodKey& key, const std::string& name);

  // Says whether find() would return something.
  bool knows(const MethodKey& key, const std::string& name);
  // Returns the executions of blocks of what find() would return, in one run; 0 for null.
  double mass(const MethodKey& key, const std::string& name);
  // Returns how much a method of that very key ran in one run of the file, in executions of blocks
  // and calls; 0: it is not there. Cost: the method's counts, and the first of a module reads it.
  double weight(const MethodKey& key);

  // Returns the calls that the file knows, of all that counts. Cost: the first call reads them.
  const CallProfile& calls();
  // Returns the words of the counts of a method that weight() has found: how large it is, about.
  uint32_t size_of(const MethodKey& key) const;

  // Returns the shape of the code that the profile under this key is of; empty if it is not known.
  const CodeShape& shape(const MethodKey& from);

  // profile_query.h; of all that counts of the file.
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key);

  // What save() has to know of a method of this process.
  struct Fate {
    bool keep = false;  // taken on trust: this run is one more that was like those before
    uint64_t cfg_hash = 0;
  };
  // What this process has seen up to now.
  struct Seen {
    Profile run;
    CallProfile calls;
    std::map<MethodKey, Fate> fates;
    ProfileInfo info;
    std::string log;
    profile::Timeline timeline;
  };
  // Adds it to the file. `decay` is what the counts of earlier runs still count for, which this run
  // asks once: saved again, the file is what it would be had only the last save been, but for what
  // others wrote in between. Waits for the disk if `sync` says so, which may take 10 ms and more.
  Status save(Seen seen, double decay, profile::Sync sync);

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
  };

  void leave_out_written(Seen& seen, ProfileInfo& file) const;
  std::vector<profile::RunRecord> past_runs(profile::UpfReader& reader, bool again) const;
  const MethodProfile* look(const MethodKey& key, const std::string& name, bool& recovered);
  void load(uint64_t module_key);
  void load_others();
  void load_segments(const std::function<bool(std::string_view key)>& wanted, Profile& into);

  std::string path_;
  MappedFile file_;
  std::unique_ptr<profile::UpfReader> reader_;
  std::set<size_t> summed_;  // the segments that count
  std::set<uint64_t> loaded_;
  Profile saved_;                    // of the modules that were asked for
  std::unique_ptr<Profile> others_;  // all of the file, once a module was not in it
  std::map<std::string, const MethodProfile*> by_name_;  // of others_; null where two have it
  std::unique_ptr<CallProfile> calls_;                   // of the file, once asked for
  double runs_ = 1;
  std::unique_ptr<Written> written_;
  SavedReport report_;
};

}  // namespace uptier::tiering
