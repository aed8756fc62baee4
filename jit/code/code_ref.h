// CodeRef: a field of a body whose contents belong to this process, and what they stand for.
//
// Law: a body that was recorded (recorded_code.h) has nothing else of the process in its bytes. So
// two processes that record the same body have the same bytes, with zeros in these fields; another
// process fills the fields in (place_code.h).
#pragma once

#include <cstdint>

namespace uptier::jit {

struct CodeRef {
  enum class Kind : uint8_t {
    kDistance,     // 4 bytes: from the end of the field to `target`, outside of the body
    kAddress,      // 8 bytes: `target`
    kContext,      // 4 bytes: where TLS has the address of the thread's context
    kBlock,        // 4 bytes: where TLS has the address of the own method's block
    kMethodWord,   // 4 bytes: from that address to byte `plus` of the own method's state
    kMethodIndex,  // 4 bytes: the index of the own method
  };

  uint32_t offset = 0;
  Kind kind = Kind::kDistance;
  uint32_t plus = 0;
  const void* target = nullptr;  // kDistance, kAddress

  friend bool operator==(const CodeRef&, const CodeRef&) = default;
};

// Returns the size of the field in bytes.
constexpr uint32_t size_of(CodeRef::Kind k) { return k == CodeRef::Kind::kAddress ? 8 : 4; }

}  // namespace uptier::jit
