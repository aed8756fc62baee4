// FrameRow: from an offset on, how the frame stands there.
//
//   kNone    nothing has been pushed: rsp points at the return address, rbp is the caller's
//   kPushed  the caller's rbp has been pushed: rsp points at it
//   kMade    rbp is the frame: it points at the caller's rbp, with the return address above it, and
//            `saved` of the callee-saved registers lie in their places (CodeTables::saved)
//
// A body's rows are sorted, the first at offset 0; a row reaches up to the next one, from the hot
// part into the cold one. A body that has none begins with `push rbp; mov rbp, rsp` and keeps that
// frame.
//
// What relies on them: a fault where there is no frame is given one (faults.h), because whoever
// walks frames follows rbp; gdb is told of each row (gdb_image.h).
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
