// SavedProfile: uses the profile of earlier processes, and saves one for the next.
//
// A saved profile is advice about code of the same shape. If the CFG hash differs, the profile is
// dropped, or its matching parts are used, and the log says so. If one saved run of a method
// justifies a compilation, the method is optimized at its first call (warm_start.cc). From then on
// it is observed like any optimized method (copy_control.h), and if its behavior differs from the
// saved one, the saved counts fade like all others.
//
//   observed methods --> like one run of the file? --yes--> count: one run more, no counts
//                                |no, or the file has changed
//                                v
//                       all methods --> save: summed, and the file is rewritten
//
// Without a file there is no saved profile, and nothing here does anything.
//
//   Thread: the caller holds the runtime's state mutex, except for is_open().
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "jit/ir/function.h"
#include "jit/ir/inline_path.h"
#include "profile/upf/timeline.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/profile_store.h"
#include "tiering/saved/run_collector.h"
#include "uptier/options.h"

namespace uptier::tiering {

class SavedProfile {
 public:
  // All outlive this. `live`: the options with later changes.
  SavedProfile(const Options& options, const Options& live, const MethodTable& methods,
               Observer& observer)
      : options_(options),
        live_(live),
        methods_(methods),
        observer_(observer),
        collector_(options, live, methods, observer) {}

  // Opens the file, before there are methods. Errors are in the report.
  void open(const std::string& pattern) {
    assert(store_ == nullptr);
    store_ = std::make_unique<ProfileStore>(pattern, options_.profile_lock_ms);
  }
  // Closes the file: there was no run to save.
  void close() { store_.reset(); }
  bool is_open() const noexcept { return store_ != nullptr; }
  // The file; null if there is none.
  ProfileStore* store() const { return store_.get(); }
  SavedReport report() const UPTIER_REQUIRES(state_lock) {
    return store_ == nullptr ? SavedReport() : store_->report();
  }

  // Says whether there is a saved profile of a method, perhaps of other code.
  bool knows(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Says whether the saved profile is worth asking the policy about, perhaps of other code.
  bool is_hot(const Method& m) const UPTIER_REQUIRES(state_lock);
  // The method's shape has just become known: adopts its saved profile if that is of this code.
  void adopt(Method& m) UPTIER_REQUIRES(state_lock);
  // Returns the saved profile of a body inlined at its place in a method, if the code of all
  // methods on the path is unchanged; else null. Cost: the first call reads all inlined bodies of
  // the file.
  const InlinedBody* inlined(const Method& root, const jit::InlinePath& path) const
      UPTIER_REQUIRES(state_lock);
  // Learns the calls in its body.
  void learn_calls(Method& m, const jit::Function& f) const UPTIER_REQUIRES(state_lock);
  // The code of a method was made from its saved profile alone.
  void trust(Method& m) UPTIER_REQUIRES(state_lock);
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key) UPTIER_REQUIRES(state_lock);

  // Saves the data of this process up to now in the file; it may be called again. `known` has the
  // first calls; `loops_off` is the error of a timed execution, in cycles; `time` is the data of
  // stack samples.
  Status save(profile::Timeline timeline, TimeProfile time, const KnownMethods& known,
              double loops_off) UPTIER_REQUIRES(state_lock);
  bool was_saved() const { return saved_; }

 private:
  bool match(Method& m, SavedMethod& saved) UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  const MethodTable& methods_;
  Observer& observer_;
  const RunCollector collector_;
  std::unique_ptr<ProfileStore> store_;
  bool saved_ = false;
};

}  // namespace uptier::tiering
