// ProfileStore: the profile of earlier processes, and where this one's goes.
//
//   open: read the file --> find: read the groups of a module when its first method is asked for
//   save, count: see profile_writer.h
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
#include "tiering/saved/profile_writer.h"
#include "tiering/saved/run_likeness.h"
#include "tiering/saved/seen_run.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"
#include "uptier/report.h"

namespace uptier::tiering {

// Executions of blocks, a run, below which asking the policy is not worth describing a method
// twice.
inline constexpr double kLeastSavedMass = 256;

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

  // See ProfileWriter.
  Status save(SeenRun seen, double decay, profile::Sync sync) {
    return writer_.save(std::move(seen), decay, sync);
  }
  Result<bool> count(const SeenRun& seen) { return writer_.count(seen, read_); }
  // Says whether a run is like one of those that were read (run_likeness.h).
  bool has_learnt_nothing(const SeenRun& seen) const { return is_like(seen, saved_, runs_); }

  // Returns who this is and when.
  static ProfileInfo info_now();

  SavedReport& report() { return report_; }
  const SavedReport& report() const { return report_; }

 private:
  void open();
  void note_segments();
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
  ReadFile read_;
  ProfileWriter writer_;
  SavedReport report_;
};

}  // namespace uptier::tiering
