// SavedProfile: the profile of earlier processes as this one uses it, and what it leaves for the next.
//
// A saved profile is advice about code of the same shape: with another CFG hash it is dropped, or what
// of it still fits is taken over, and the log says so. A method that one run of it makes worth a
// compilation is optimized at its first call (warm_start.cc); it is watched from then on like any
// optimized method (copy_control.h), and if what it does is not what was saved, the saved counts
// fade like those of all others.
//
//   watched methods --> like one run of the file? --yes--> count: one run more, no counts
//                                |no, or the file is another by now
//                                v
//                       all methods --> save: summed, and the file is written anew
//
// Without a file there is none, and nothing here does anything.
//
//   Thread: the caller holds the runtime's state mutex, but in is_open().
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "jit/ir/function.h"
#include "jit/ir/inline_path.h"
#include "profile/upf/timeline.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/observer.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/profile_store.h"
#include "tiering/saved/run_collector.h"
#include "uptier/options.h"

namespace uptier::tiering {

class SavedProfile {
 public:
  // All outlive this. `live`: what of the options changes.
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
  // There was no run to be saved.
  void close() { store_.reset(); }
  bool is_open() const noexcept { return store_ != nullptr; }
  // The file; null where there is none.
  ProfileStore* store() const { return store_.get(); }
  SavedReport report() const { return store_ == nullptr ? SavedReport() : store_->report(); }

  // Returns whether something is saved of a method, perhaps of other code.
  bool knows(const Method& m) const;
  // Returns whether what is saved of it is worth asking the policy about, perhaps of other code.
  bool is_hot(const Method& m) const;
  // The method's shape has just become known: takes over what is saved of it, if that is of this code.
  void adopt(Method& m);
  // Returns what is saved of a body in its place in a method, if all code on the way is what it was;
  // null: nothing. Cost: the first call reads what the file has of all bodies.
  const InlinedBody* inlined(const Method& root, const jit::InlinePath& path) const;
  // Learns where its body calls.
  void learn_calls(Method& m, const jit::Function& f) const;
  // The code of a method was made from its saved profile alone.
  void trust(Method& m);
  std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                     std::string_view key);

  // Brings what this process has seen up to now into the file, which may be asked for again. `known`
  // tells of first calls; `loops_off` is by how many cycles a timed execution may be off; `time` is that of
  // stack samples.
  Status save(profile::Timeline timeline, TimeProfile time, const KnownMethods& known,
              double loops_off);
  bool was_saved() const { return saved_; }

 private:
  bool match(Method& m, SavedMethod& saved);

  const Options& options_;
  const Options& live_;
  const MethodTable& methods_;
  Observer& observer_;
  const RunCollector collector_;
  std::unique_ptr<ProfileStore> store_;
  bool saved_ = false;
};

}  // namespace uptier::tiering
