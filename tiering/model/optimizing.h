// Optimizing: the results of optimizing a method, except for the version that calls reach.
//
// Law: made when a part of it is first written, at the latest with the first optimized version for
// calls; by the worker, or without a worker by the thread that flushes. Never removed. Before that
// it reads as no copy, no trial, no version.
//
//   Thread: `copy`, `copy_expected`, `trial` and the versions in `loop_copies` are read by slow paths
//           without a lock; all else with the runtime's state mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "jit/ir/inline_path.h"
#include "jit/opt/inlinee.h"
#include "sampler/convergence.h"
#include "sampler/rate.h"
#include "tiering/base/made_later.h"
#include "tiering/model/trial.h"
#include "tiering/model/version.h"
#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// The counts of inlined bodies in a thread's last flush.
struct InlinedWords {
  uint32_t copy = 0;               // the copy that counted them
  std::vector<uint64_t> words;     // of blocks
  std::vector<InlinedSite> slots;  // by Version::slots
};

// The windows of an instrumented copy of optimized code; see drift_detector.h.
struct CopyWindows {
  // The words of its slab that the copy counts: by block site - 1, then tables of targets, then the
  // words of inlined bodies.
  std::vector<bool> observed;
  sampler::Convergence convergence;   // of its windows
  std::vector<double> known, recent;  // counts up to the last whole window, and since
  bool misled = false;                // the log says that the code was made from another profile
  uint64_t samples = 0;               // in all its windows
  double drift = 0;   // least distance of `known` from the profile of the code; 0: not known
  bool told = false;  // the log says that nothing follows from the drift

  // Returns the bound on the distance of `known` from the truth.
  double error() const;
  void forget(double epsilon);
};

// The observation of optimized code that frames stay in, at one of their loops; see
// loop_copy_control.h. The counts of copies, and the data about all of them, are in Optimizing.
struct LoopCopy {
  std::atomic<const Version*> version{nullptr};  // in service; read by slow paths without a lock
  // Guarded by Runtime's state mutex.
  bool asked = false;  // once for each plain version
  CopyWindows windows;
  double iterations = 0;  // in optimized code, when the last window arrived
};
struct LoopCopies {
  std::unique_ptr<LoopCopy[]> at;  // by LoopId
  // Guarded by Runtime's state mutex: when the first frame reported, and the compile time spent
  // since on observing only.
  uint64_t began_ns = 0;
  uint64_t compile_ns = 0;
};

// Exact counts of optimized code, see observe/tallied.h.
struct TalliedSum {
  // A block of the method's own body (empty path), or of a body inlined into it.
  struct Place {
    jit::InlinePath path;
    SiteId site = 0;  // 0: none

    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Block {
    double executions = 0;
    double exact = 0;     // the counted part of them; the rest was estimated by shares
    double by_loops = 0;  // the part that follows from iterations, not from entries
    // A block with an exact count by which most of the others were estimated, and its executions
    // in versions that have this block beside it.
    Place beside;
    double beside_ran = 0;
    double elsewhere = 0;  // executions in versions that count this block beside another
    double most = 0;       // executions in one version
  };
  double calls = 0;                                      // calls that ran optimized code
  std::map<jit::InlinePath, std::vector<Block>> blocks;  // by block site - 1

  const Block* find(const Place& p) const {
    auto at = blocks.find(p.path);
    bool has = at != blocks.end() && p.site != 0 && p.site <= at->second.size();
    return has ? &at->second[p.site - 1] : nullptr;
  }
};

// Frames that were found in baseline code although the method is optimized.
struct LeftBehind {
  bool found = false;
  uint64_t from = 0;     // iterations of baseline code that were known then
  double per_round = 0;  // instructions that one of these, or a call, had executed in the mean
};

struct Optimizing {
  // The instrumented copy in service; see copy_control.h. Stores are releases that pair with
  // acquire loads in slow paths.
  std::atomic<const Version*> copy{nullptr};
  // The previous copy was removed with its version, and another is being made: rates stay as they
  // are. Relaxed: a late thread takes one sample more or less.
  std::atomic<bool> copy_expected{false};
  std::atomic<Trial*> trial{
      nullptr};  // of the version in service, while it lasts; published with release, too
  MadeLater<LoopCopies> loop_copies;  // made once, and then kept

  TalliedSum tallied;  // of versions whose code was freed
  // Calls of each version, by serial; the version in service (0: none), and the number of calls
  // before it.
  std::map<uint64_t, double> calls_of;
  uint64_t served = 0;
  uint64_t served_since = 0;
  sampler::MethodRate rate;  // of calls that run the copy; slow paths widen it
  CopyWindows windows;
  bool asked = false;                      // a copy was requested, once for each optimized version
  uint64_t calls_before = 0;               // calls known when that version was installed
  uint32_t copies = 0;                     // installed so far
  uint64_t since_ns = 0;                   // when a copy that is not cheap was first wanted
  uint64_t copies_ns = 0;                  // processor time that copies for calls took
  uint32_t most_words = 0;                 // the largest slab of a copy
  std::map<uint32_t, InlinedWords> words;  // by thread number
  // By site and callee: the callee's word in the sums of the site's table. Kept for the method's
  // whole life.
  std::map<std::pair<SiteId, MethodKey>, uint32_t> target_words;
  // The same for calls in inlined bodies.
  std::map<std::tuple<jit::InlinePath, SiteId, MethodKey>, uint32_t> inlined_target_words;
  std::vector<std::unique_ptr<Trial>> trials;
  uint32_t versions = 0;        // installed so far
  uint32_t drift_versions = 0;  // of these, made because of drift
  LeftBehind left_behind;       // since the method was optimized, or an OSR version was requested
  uint64_t slower_calls = 0;    // number of calls when a trial found optimized code slower than
                                // baseline code
};

}  // namespace uptier::tiering
