// ProbedCode: code and its rows, as LLVM's pseudo-probes describe them: plain data for the writers
// of the ELF file (probe_elf.h) and of the samples (probe_samples.h).
//
// A probe is a block or a call of a body, at the address where it starts. The number of a block or
// a call is its site. An id has 16 bits: sites above are left out by who fills this in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uptier::profile {

struct ProbedFunction {
  std::string name;   // unique, see llvm_names.h
  uint64_t hash = 0;  // of its control flow, not 0
};

enum class LlvmProbe : uint8_t { kBlock = 0, kIndirectCall = 1, kDirectCall = 2 };

struct PlacedProbe {
  uint64_t address = 0;
  uint32_t body = 0;  // in ProbedCode::bodies
  uint32_t id = 0;
  LlvmProbe kind = LlvmProbe::kBlock;

  friend bool operator==(const PlacedProbe&, const PlacedProbe&) = default;
};

// A body in the code: its own function's (the first), or an inlined one.
struct ProbedBody {
  uint32_t function = 0;  // in ProbedFile::functions
  uint32_t parent = 0;    // the body with the call; earlier in the list
  uint32_t call = 0;      // the call's id there
};

// Consecutive bytes of the code, at the address where they ran.
struct ProbedPart {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;

  uint64_t end() const { return address + bytes.size(); }
  bool holds(uint64_t at) const { return at >= address && at < end(); }
};

struct ProbedCode {
  std::vector<ProbedPart> parts;    // the hot part, then the cold one if there is one
  std::vector<ProbedBody> bodies;   // at least one
  std::vector<PlacedProbe> probes;  // in any order
};

struct ProbedFile {
  std::vector<ProbedFunction> functions;
  std::vector<ProbedCode> codes;  // their parts do not overlap
};

}  // namespace uptier::profile
