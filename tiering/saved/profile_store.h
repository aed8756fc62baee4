// ProfileStore: the profile of earlier processes, and the file for this one's.
//
//   open: read the file --> find: read the groups of a module when its first method is requested
//   save, count: see profile_writer.h
//
// Two processes that end at the same time do not lose data: each reads what the other wrote, or
// finds the file unchanged. The lock is on the file itself (file_lock.h).
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
#include "tiering/base/state_lock.h"
#include "tiering/model/saved_method.h"
#include "tiering/saved/mapped_file.h"
#include "tiering/saved/profile_writer.h"
#include "tiering/saved/run_likeness.h"
#include "tiering/saved/seen_run.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"
#include "uptier/report.h"

namespace uptier::tiering {

// Executions of blocks per run below which asking the policy is not worth describing a method
// twice.
inline constexpr double kLeastSavedMass = 256;

class ProfileStore {
 public:
  // Opens the file named by `pattern`, which need not exist; a link is followed. Problems are in
  // report(). `lock_ms`: how long to wait for another process that holds the lock.
  explicit ProfileStore(const std::string& pattern, uint64_t lock_ms = 5000);

  // Returns the saved profile of a method, or null. If the file has no method of the key's module,
  // uses one of another module with the same name, if only one has it (SavedMethod::recovered). If
  // there are profiles for several versions of its code, uses the one with this hash, or else the
  // one of the latest run; it may be of other code.
  std::unique_ptr<SavedMethod> find(const MethodKey& key, const std::string& name,
                                    uint64_t cfg_hash) UPTIER_REQUIRES(state_lock);

  // Says whether find() would return a profile.
  bool knows(const MethodKey& key, const std::string& name) UPTIER_REQUIRES(state_lock);
  // Returns the executions of blocks, per run, in the profile that find() would return; 0 for null.
  double mass(const MethodKey& key, const std::string& name) UPTIER_REQUIRES(state_lock);
  // Returns how much a method of exactly this key ran per run, in executions of blocks and calls;
  // 0: it is not in the file. Cost: the method's counts; the first method of a module reads the
  // module.
  double weight(const MethodKey& key) UPTIER_REQUIRES(state_lock);

  // Returns the calls in all counting segments of the file. Cost: the first use reads them.
  const CallProfile& calls() UPTIER_REQUIRES(state_lock);
  // Returns the inlined bodies in the same way.
  const InlinedBodies& inlined() UPTIER_REQUIRES(state_lock);
  // Returns the number of counter words of a method that weight() has found: an estimate of its
  // size.
  uint32_t size_of(const MethodKey& key) const UPTIER_REQUIRES(state_lock);

  // Returns the shape of the code of the profile with this key; empty if it is not known.
  const CodeShape& shape(const MethodKey& from) UPTIER_REQUIRES(state_lock);

  // See profile_query.h; over all counting segments of the file.
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key) UPTIER_REQUIRES(state_lock);

  // See ProfileWriter.
  Status save(SeenRun seen, double decay, profile::Sync sync) UPTIER_REQUIRES(state_lock) {
    return writer_.save(std::move(seen), decay, sync);
  }
  Result<bool> count(const SeenRun& seen) UPTIER_REQUIRES(state_lock) {
    return writer_.count(seen, read_);
  }
  // Says whether a run is like one of those in the file (run_likeness.h).
  bool has_learnt_nothing(const SeenRun& seen) const UPTIER_REQUIRES(state_lock) {
    return is_like(seen, saved_, runs_);
  }

  // Returns the identity of this process and the time.
  static ProfileInfo info_now();

  SavedReport& report() UPTIER_REQUIRES(state_lock) { return report_; }
  const SavedReport& report() const UPTIER_REQUIRES(state_lock) { return report_; }

 private:
  void open() UPTIER_REQUIRES(state_lock);
  void note_segments() UPTIER_REQUIRES(state_lock);
  const MethodProfile* look(const MethodKey& key, const std::string& name, bool& recovered)
      UPTIER_REQUIRES(state_lock);
  void load(uint64_t module_key) UPTIER_REQUIRES(state_lock);
  void load_others() UPTIER_REQUIRES(state_lock);
  void load_segments(const std::function<bool(std::string_view key)>& wanted, Profile& into)
      UPTIER_REQUIRES(state_lock);

  std::string path_;
  uint64_t lock_ms_;
  MappedFile file_;
  std::unique_ptr<profile::UpfReader> reader_;
  std::set<size_t> summed_;  // the segments that count
  std::set<uint64_t> loaded_;
  Profile saved_;                    // of the requested modules
  std::unique_ptr<Profile> others_;  // the whole file, once a module was not in it
  std::map<std::string, const MethodProfile*> by_name_;  // of others_; null if two have the name
  std::unique_ptr<CallProfile> calls_;                   // of the file, once requested
  std::unique_ptr<InlinedBodies> inlined_;               // of the file, once requested
  double runs_ = 1;
  ReadFile read_;
  ProfileWriter writer_;
  SavedReport report_;
};

}  // namespace uptier::tiering
