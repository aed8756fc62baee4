// NamedCode: one compiled body as native tools (perf, gdb) see it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/code/frame_row.h"
#include "jit/code/native_lines.h"

namespace uptier::jit {

struct NamedCode {
  const uint8_t* base = nullptr;
  uint32_t size = 0;
  // It begins in a frame of another body (OSR versions); otherwise with `push rbp; mov rbp, rsp`.
  bool at_loop = false;
  // Callee-saved registers that the frame keeps, from the one at rbp + saved_at downwards.
  std::vector<uint8_t> saved;
  int32_t saved_at = 0;
  std::vector<FrameRow> frames;  // offsets from `base`; if empty, it begins as above
  std::string name;
  NativeLines lines;
};

}  // namespace uptier::jit
