// StackSamples: the time of methods and of call paths, from the stack samples of all threads.
//
// A sample's time goes to the innermost body that was running, including inlined bodies, and to the
// path of calls that led there. Time outside of all bodies goes to a place of its own ("[host]")
// under the guest frame that called it. So the times of all rows add up to the time of all samples,
// and so do those of all nodes.
//
// A frame is found by its address, so each record is read before the code it names is freed. The
// serial number in the frame detects a violation of that.
//
//   Thread: the caller holds the state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "jit/code/code_space.h"
#include "jit/code/stubs.h"
#include "sampler/stack_record.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "uptier/profile_time.h"
#include "uptier/stack_time.h"

namespace uptier::tiering {

class StackSamples {
 public:
  // The number of call paths that are kept; later samples count where their path leaves the tree.
  static constexpr size_t kMostNodes = 1u << 16;

  explicit StackSamples(const MethodTable& methods) : methods_(methods) {}

  void take(const sampler::StackRecord& r, const jit::CodeSpace& space, const jit::StubTable& stubs)
      UPTIER_REQUIRES(state_lock);
  // Returns the methods in whose bodies the innermost guest frame of the last record was.
  const std::vector<MethodId>& met() const UPTIER_REQUIRES(state_lock) { return met_; }
  // Adds the results to a report, except for the call paths.
  void report(TimeReport& to) const UPTIER_REQUIRES(state_lock);
  // Adds the call paths.
  void report_paths(TimeReport& to) const UPTIER_REQUIRES(state_lock);
  // Returns the call paths and the sums of all samples.
  TimeProfile profile() const UPTIER_REQUIRES(state_lock);
  bool empty() const UPTIER_REQUIRES(state_lock) { return samples_ == 0; }

 private:
  // Samples and time; the squares of times give the number of samples that they are worth.
  struct Sum {
    uint64_t samples = 0;
    double ns = 0;
    double squares = 0;
    void add(double weight) {
      ++samples;
      ns += weight;
      squares += weight * weight;
    }
  };
  // A place where time is spent: a method, or another place. Numbered by its position in named_.
  struct Named {
    TimePlace place;
    MethodId method;
    MethodKey key;
    std::string name;
  };
  // The kind of code of a frame.
  struct CodeKind {
    Tier tier = Tier::kHost;
    Copy copy = Copy::kPlain;
    bool osr = false;
  };
  struct Node {
    uint32_t parent;
    uint32_t named;
    Sum own;
  };
  using RowKey = std::tuple<uint32_t, Tier, Copy, bool, bool>;  // named, kind, inlined
  // A guest frame; inlined ones are separate.
  struct Frame {
    uint32_t named;
    CodeKind kind;
    bool inlined;
  };

  uint32_t number_of(MethodId m) UPTIER_REQUIRES(state_lock);
  uint32_t number_of(TimePlace p) UPTIER_REQUIRES(state_lock);
  CodeKind kind_of(const jit::Code& code) UPTIER_REQUIRES(state_lock);
  // Appends the bodies at an address of code, innermost first.
  void add_bodies(const jit::Code& code, uint64_t pc) UPTIER_REQUIRES(state_lock);
  void add_frames(const sampler::StackRecord& r, const jit::CodeSpace& space,
                  const jit::StubTable& stubs) UPTIER_REQUIRES(state_lock);
  void add_place(const sampler::StackRecord& r) UPTIER_REQUIRES(state_lock);
  void find_met() UPTIER_REQUIRES(state_lock);
  uint32_t node_of(uint32_t parent, uint32_t named, bool& cut) UPTIER_REQUIRES(state_lock);
  void add_path(double weight) UPTIER_REQUIRES(state_lock);
  std::vector<PathFrame> path_to(uint32_t node) const UPTIER_REQUIRES(state_lock);
  ShareEstimate share_of(const Sum& s) const UPTIER_REQUIRES(state_lock);

  const MethodTable& methods_;
  std::vector<Named> named_;
  std::unordered_map<uint32_t, uint32_t> by_method_;  // MethodId::number()
  uint32_t places_[5] = {};                           // position in named_ + 1; 0: not there yet
  std::unordered_map<uint64_t, CodeKind> kinds_;      // by serial number
  std::map<RowKey, Sum> rows_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> children_;  // by parent + 1 and named
  Sum gaps_[sampler::kSampleGaps];
  std::vector<Frame> frames_;  // of the record being taken, innermost first
  std::vector<MethodId> met_;
  uint64_t samples_ = 0;
  double sampled_ns_ = 0;
  double squares_ = 0;
  double unattributed_ns_ = 0;
  uint64_t stale_ = 0;
  uint64_t paths_cut_ = 0;
};

}  // namespace uptier::tiering
