// StackSamples: the time of methods and of call paths, from the stack samples of all threads.
//
// A sample's time goes to the innermost body where the thread was, inlined bodies included, and to the path of
// calls that led there. What lies in no body goes to a place of its own ("[host]") under the guest frame
// that called it. So the times of all rows add up to the time of all samples, and so do those of all nodes.
//
// A frame is found by its address, so each record is taken before the code that it names is freed; the serial
// number that comes with the address tells whether that was kept.
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
#include "tiering/model/method_table.h"
#include "uptier/stack_time.h"

namespace uptier::tiering {

class StackSamples {
 public:
  // Call paths that are kept; what comes after them counts where its path leaves the tree.
  static constexpr size_t kMostNodes = 1u << 16;

  explicit StackSamples(const MethodTable& methods) : methods_(methods) {}

  void take(const sampler::StackRecord& r, const jit::CodeSpace& space,
            const jit::StubTable& stubs);
  // Adds what was seen.
  void report(TimeReport& to) const;
  bool empty() const { return samples_ == 0; }

 private:
  // Samples and time; and the squares of times, for how many samples they are worth.
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
  // What time is spent in: a method by the number of its place in named_, or another place.
  struct Named {
    TimePlace place;
    MethodId method;
    MethodKey key;
    std::string name;
  };
  // The code that a frame lies in.
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
  // A frame of the guest's, inlined ones apart.
  struct Frame {
    uint32_t named;
    CodeKind kind;
    bool inlined;
  };

  uint32_t number_of(MethodId m);
  uint32_t number_of(TimePlace p);
  CodeKind kind_of(const jit::Code& code);
  // Appends the bodies at an address of code, innermost first.
  void add_bodies(const jit::Code& code, uint64_t pc);
  void add_frames(const sampler::StackRecord& r, const jit::CodeSpace& space,
                  const jit::StubTable& stubs);
  void add_place(const sampler::StackRecord& r);
  uint32_t node_of(uint32_t parent, uint32_t named, bool& cut);
  void add_path(double weight);
  ShareEstimate share_of(const Sum& s) const;

  const MethodTable& methods_;
  std::vector<Named> named_;
  std::unordered_map<uint32_t, uint32_t> by_method_;  // MethodId::number()
  uint32_t places_[5] = {};                           // in named_ + 1; 0: not yet
  std::unordered_map<uint64_t, CodeKind> kinds_;      // by serial number
  std::map<RowKey, Sum> rows_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> children_;  // parent + 1 and named
  Sum gaps_[sampler::kSampleGaps];
  std::vector<Frame> frames_;  // of the record that is taken, innermost first
  uint64_t samples_ = 0;
  double sampled_ns_ = 0;
  double squares_ = 0;
  double unattributed_ns_ = 0;
  uint64_t stale_ = 0;
  uint64_t paths_cut_ = 0;
};

}  // namespace uptier::tiering
