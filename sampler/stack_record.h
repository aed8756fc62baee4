// StackRecord: the call stack of a thread at its sampling signal.
//
// A frame is one word: the address in the low 48 bits, and above it the low 16 bits of the code's
// serial number. The serial is a check: a reader finds the code by the address, and if the code has
// another serial, it is not the code that ran.
//
//   leaf      the kind of code that was running; frames[0] is in it if the kind is kBody or kStub
//   frames    innermost first: addresses inside bodies (for callers: inside the call)
//   gap       why frames are missing; kNone: none are
//
// `weight_ns` is the processor time that the sample stands for.
#pragma once

#include <array>
#include <cstdint>

namespace uptier::sampler {

// The kind of code that the thread was running.
enum class SampleLeaf : uint8_t {
  kBody,     // a compiled body
  kStub,     // the stub of a method that is being called
  kRuntime,  // a runtime routine, or code it calls: slow paths, exits, probes
  kHost,     // a host function called by guest code
  kBlocked,  // the library, below begin_blocked: it describes or compiles a method, or waits
  kOutside,  // host code not called by guest code
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
  kUncertain,     // host code had entered a frame below it without an invoke; that frame may have
                  // returned already
};
inline constexpr uint32_t kSampleGaps = 7;
// Returns "none", "other_runtime", "foreign_stack", "no_frame", "broken_chain", "too_deep" or
// "uncertain".
const char* sample_gap_name(SampleGap gap) noexcept;

struct StackRecord {
  static constexpr uint32_t kMostFrames = 250;

  SampleLeaf leaf = SampleLeaf::kOutside;
  SampleGap gap = SampleGap::kNone;
  uint16_t count = 0;                        // number of frames
  uint64_t weight_ns = 0;                    // processor time that the sample stands for
  uint64_t cycles = 0;                       // time stamp counter
  std::array<uint64_t, kMostFrames> frames;  // NOLINT: only the first `count` are set

  // Adds a frame. Returns false if there is no room for it.
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
