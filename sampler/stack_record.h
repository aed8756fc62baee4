// StackRecord: where a thread was when its sampling signal came.
//
// A frame is one word: the address in the low 48 bits, the low 16 bits of the code's serial number above.
// The serial is a check: whoever reads the record finds the code by the address, and a code with another
// serial is not the one that ran.
//
//   leaf      the kind of place where the thread was; frames[0] is in it where the kind is kBody or kStub
//   frames    innermost first: addresses inside bodies (of callers, inside of the call)
//   gap       why frames are missing; kNone: none are
//
// The unit of `weight_ns` is processor time that the sample stands for.
#pragma once

#include <array>
#include <cstdint>

namespace uptier::sampler {

// What the thread was running.
enum class SampleLeaf : uint8_t {
  kBody,     // a compiled body
  kStub,     // the stub of a method that is being called
  kRuntime,  // a routine of ours, or what it calls: slow paths, exits, probes
  kHost,     // a host function that guest code has called
  kBlocked,  // the library, below begin_blocked: it describes or compiles a method, or waits
  kOutside,  // code of the host that no guest code has called
};
inline constexpr uint32_t kSampleLeaves = 6;
// Returns "body", "stub", "runtime", "host", "blocked" or "outside".
const char* sample_leaf_name(SampleLeaf leaf) noexcept;

// Why a sample has no frames, or not all of them.
enum class SampleGap : uint8_t {
  kNone,
  kOtherRuntime,  // the thread was in another runtime
  kForeignStack,  // it was on a stack that was never registered, or was changing stacks
  kNoFrame,       // no guest frame was found below host code, although an invoke was under way
  kBrokenChain,   // the frames did not lead to the invoke
  kTooDeep,       // there were more frames than a record holds: the outermost are missing
  kUncertain,     // below host code a frame was found that host code had entered without an invoke:
                  // it may be one that has returned
};
inline constexpr uint32_t kSampleGaps = 7;
// Returns "none", "other_runtime", "foreign_stack", "no_frame", "broken_chain", "too_deep" or
// "uncertain".
const char* sample_gap_name(SampleGap gap) noexcept;

struct StackRecord {
  static constexpr uint32_t kMostFrames = 250;

  SampleLeaf leaf = SampleLeaf::kOutside;
  SampleGap gap = SampleGap::kNone;
  uint16_t count = 0;                        // of frames
  uint64_t weight_ns = 0;                    // processor time that it stands for
  uint64_t cycles = 0;                       // time stamp counter
  std::array<uint64_t, kMostFrames> frames;  // NOLINT: the first `count` only

  // Adds a frame. Returns false when there is no room for it.
  bool push(uint64_t pc, uint64_t serial) noexcept {
    if (count == kMostFrames) return false;
    frames[count++] = (pc & kPcMask) | serial << kPcBits;
    return true;
  }
  static uint64_t pc_of(uint64_t frame) noexcept { return frame & kPcMask; }
  static bool is_of(uint64_t frame, uint64_t serial) noexcept {
    return frame >> kPcBits == (serial & 0xffff);
  }

 private:
  static constexpr uint32_t kPcBits = 48;
  static constexpr uint64_t kPcMask = (uint64_t{1} << kPcBits) - 1;
};

}  // namespace uptier::sampler
