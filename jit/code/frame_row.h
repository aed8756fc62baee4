// FrameRow: the state of the frame from an offset on.
//
//   kNone    nothing has been pushed: rsp points at the return address, rbp is the caller's
//   kPushed  the caller's rbp has been pushed: rsp points at it
//   kMade    rbp is the frame: it points at the caller's rbp, with the return address above it, and
//            `saved` of the callee-saved registers lie in their places (CodeTables::saved)
//
// A body's rows are sorted, the first at offset 0; a row reaches up to the next one, across the
// border of the hot and the cold part. A body without rows begins with `push rbp; mov rbp, rsp` and
// keeps that frame.
//
// The rows have two users: the handler of a fault without a frame makes one (faults.h), because
// every frame walker follows rbp; and gdb gets each row (gdb_image.h).
#pragma once

#include <cstdint>

namespace uptier::jit {

struct FrameState {
  enum class Kind : uint8_t { kNone, kPushed, kMade };
  Kind kind = Kind::kNone;
  uint8_t saved = 0;

  friend bool operator==(const FrameState&, const FrameState&) = default;
};

struct FrameRow {
  uint32_t offset = 0;
  FrameState state;

  friend bool operator==(const FrameRow&, const FrameRow&) = default;
};

}  // namespace uptier::jit
