// log_format.h: names the format of a line that compiled code logs; log_text.h explains it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptier {

// A format that a runtime knows. It is part of the tags of its records:
//
//   bit 31 set | number, 23 bits | arguments, 4 bits | index of the argument, 4 bits
//
// So a host that has formats uses tags below 2^31 for its other log probes.
struct LogFormat {
  static constexpr uint32_t kMostArguments = 8;
  static constexpr uint32_t kMostFormats = 1 << 16;
  static constexpr size_t kMostText = 4096;

  uint32_t tag = 0;  // of the first argument; 0: no format

  bool valid() const { return tag >> 31 != 0; }
  uint32_t number() const { return tag >> 8 & 0x7fffff; }
  uint32_t arguments() const { return tag >> 4 & 15; }

  friend bool operator==(const LogFormat&, const LogFormat&) = default;
};

}  // namespace uptier
