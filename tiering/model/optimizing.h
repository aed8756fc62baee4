// Optimizing: the results of optimizing a method, except for the version that calls reach.
//
// Law: made when something of it is first written, with the first optimized version for calls at the
// latest; by the worker, or without a worker by the thread that flushes. Never taken away. Before that it
// reads as no copy, no trial, no version.
//
//   Thread: `copy`, `copy_expected`, `trial` and what `loop_copies` has in service are read by slow
//           paths without a lock; all else with the runtime's state mutex.
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

// The counts of inlined bodies that a thread handed over last.
struct InlinedWords {
  uint32_t copy = 0;               // which copy counted it
  std::vector<uint64_t> words;     // of blocks
  std::vector<InlinedSite> slots;  // by Version::slots
};

// The windows of an instrumented copy of optimized code; see drift_detector.h.
struct CopyWindows {
  // Which words of its slab the copy counts in: by block site - 1, then tables of targets, then the
  // words of inlined bodies.
  std::vector<bool> observed;
  sampler::Convergence convergence;   // of its windows
  std::vector<double> known, recent;  // what it counted, up to the last whole window and since
  bool misled = false;                // it was said that the code was made from another profile
  uint64_t samples = 0;               // in all its windows
  double drift = 0;   // how far at least `known` is from what the code was made from; 0: not known
  bool told = false;  // that nothing follows from the drift

  // Returns how far `known` may lie from the truth.
  double error() const;
  void forget(double epsilon);
};

// What is observed of optimized code that frames stay in, at one of their loops; see
// loop_copy_control.h. The counts of copies, and what is known of all of them, are Optimizing's.
struct LoopCopy {
  std::atomic<const Version*> version{nullptr};  // in service; read by slow paths without a lock
  // Guarded by Runtime's state mutex.
  bool asked = false;  // once for each plain version
  CopyWindows windows;
};
struct LoopCopies {
  std::unique_ptr<LoopCopy[]> at;  // by LoopId
  // Guarded by Runtime's state mutex: when the first frame answered, and what was compiled since for
  // nothing but observing.
  uint64_t began_ns = 0;
  uint64_t compile_ns = 0;
};

// What optimized code has counted exactly, see observe/tallied.h.
struct TalliedSum {
  // A block of the method's own body (of the empty path), or of one that is inlined into it.
  struct Place {
    jit::InlinePath path;
    SiteId site = 0;  // 0: none
  };
  struct Block {
    double executions = 0;
    double exact = 0;  // those of them that were counted, not shared out
    // A block that was counted exactly, beside which the most of the others run, and how many these are.
    Place beside;
    double most = 0;
  };
  double calls = 0;                                      // that ran optimized code
  std::map<jit::InlinePath, std::vector<Block>> blocks;  // by block site - 1

  const Block* find(const Place& p) const {
    auto at = blocks.find(p.path);
    bool has = at != blocks.end() && p.site != 0 && p.site <= at->second.size();
    return has ? &at->second[p.site - 1] : nullptr;
  }
};

struct Optimizing {
  // The instrumented copy in service; see copy_control.h. Stores are releases that pair with
  // acquire loads in slow paths.
  std::atomic<const Version*> copy{nullptr};
  // The one before has gone with its version, and another is being made: rates stay as they are.
  // Relaxed: whoever is late samples once more, or once less.
  std::atomic<bool> copy_expected{false};
  std::atomic<Trial*> trial{
      nullptr};  // of the version in service, while it lasts; likewise released
  MadeLater<LoopCopies> loop_copies;  // made once, and then as it is

  TalliedSum tallied;  // by versions whose code was freed
  // Calls that went to each version, by serial; that in service (0: none), and the calls before it.
  std::map<uint64_t, double> calls_of;
  uint64_t served = 0;
  uint64_t served_since = 0;
  sampler::MethodRate rate;  // of calls that run the copy; slow paths widen it
  CopyWindows windows;
  bool asked = false;         // for a copy, once for each optimized version
  uint64_t calls_before = 0;  // calls that were known of when that one came into service
  uint32_t copies = 0;        // that were in service so far
  uint32_t most_words = 0;    // that one of them had
  std::map<uint32_t, InlinedWords> words;  // by thread number
  // By site and callee: its word, in what has come of the site's table. The method's whole life.
  std::map<std::pair<SiteId, MethodKey>, uint32_t> target_words;
  // Likewise of calls in inlined bodies.
  std::map<std::tuple<jit::InlinePath, SiteId, MethodKey>, uint32_t> inlined_target_words;
  std::vector<std::unique_ptr<Trial>> trials;
  uint32_t versions = 0;        // that were in service so far, and
  uint32_t drift_versions = 0;  // that were made for drift
  uint64_t slower_calls = 0;    // calls when a trial found optimized code slower than baseline code
};

}  // namespace uptier::tiering
