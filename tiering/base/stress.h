// Stress: every point where control may be diverted or a resource refused is numbered, and a plan
// says which numbers are forced.
//
//   plan  = [kind "=" form {"," kind "=" form}]
//   kind  = osr      arrivals at loop headers of baseline code: enter optimized code there
//         | copy     arrivals at loop headers: go on in the other copy
//         | guard    guards that would hold: fail
//         | code     code allocations: refused
//         | compile  compilations: fail
//         | delay    compilations: wait kStressDelayMs first
//         | flip     calls that reach the slow path: run the version that the cell does not point
//                    to; every call of a method with two versions reaches it then
//         | slow     optimized versions for calls: made slow, by polling in every block
//         | values   optimized versions for calls: one more is made, with a guard, for values of the
//                    parameters that may be wrong, and stays
//         | osr_out  headers of long loops of optimized code: the frame goes to code for this loop,
//                    every third of them to baseline code
//         | relay    installed versions, and notes of threads: all movable code is moved
//   form  = all | at:N | from:N | every:N | random:P:SEED       N counts from 1, P in 0..1
//         | once                                              osr, copy, guard and osr_out only:
//           the first visit of a place: each loop of a method, each copy of it, and each guard
//           and header of each piece of optimized code
//
// Each kind counts its points and the forced ones; a run that forced nothing has tested nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/report.h"
#include "uptier/result.h"

namespace uptier::tiering {

enum class StressKind : uint8_t {
  kOsr,
  kCopy,
  kGuard,
  kCode,
  kCompile,
  kDelay,
  kFlip,
  kSlow,
  kValues,
  kOsrOut,
  kRelay
};
inline constexpr size_t kStressKinds = 11;
inline constexpr uint32_t kStressDelayMs = 5;

struct StressForm {
  enum class Mode : uint8_t { kOff, kAll, kAt, kFrom, kEvery, kRandom, kOnce };
  Mode mode = Mode::kOff;
  uint64_t n = 0;
  double probability = 0;
  uint64_t seed = 0;

  // Says whether point number `point` (from 1) is forced; for kOnce, whether it is if its place is
  // new. Pure, so a run can be repeated.
  bool forces(uint64_t point) const noexcept;
};

struct StressPlan {
  std::array<StressForm, kStressKinds> forms;

  // Errors: kInvalidArgument, with the wrong part and the legal forms.
  static Result<StressPlan> parse(std::string_view text);
  const StressForm& form(StressKind k) const { return forms[static_cast<size_t>(k)]; }
};

// The places that were visited. After some ten thousand, further places count as visited. Thread:
// any.
class MetPlaces {
 public:
  MetPlaces() : words_(new std::atomic<uint64_t>[kWords]()) {}

  // Says whether a place (any number but 0) is new.
  bool meet(uint64_t place) noexcept;

 private:
  static constexpr size_t kWords = 1 << 15;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

// A plan in use. Thread: any; the counters are relaxed, since only their totals matter.
class Stress {
 public:
  explicit Stress(const StressPlan& plan);

  bool active(StressKind k) const { return plan_.form(k).mode != StressForm::Mode::kOff; }
  // Numbers the next point of a kind and says whether it is forced. `what` (a method's index, a
  // code's serial) and `where` in it are the place for `once`.
  bool point(StressKind k, uint64_t what = 0, uint64_t where = 0) noexcept;
  // Returns the counts of the active kinds.
  std::vector<StressCount> counts() const;
  uint64_t points(StressKind k) const { return points_[static_cast<size_t>(k)].load(); }
  uint64_t forced(StressKind k) const { return forced_[static_cast<size_t>(k)].load(); }

 private:
  StressPlan plan_;
  std::array<std::unique_ptr<MetPlaces>, kStressKinds> met_;  // for kinds with kOnce
  std::array<std::atomic<uint64_t>, kStressKinds> points_{};
  std::array<std::atomic<uint64_t>, kStressKinds> forced_{};
};

}  // namespace uptier::tiering
