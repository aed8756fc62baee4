// code_image.h: compiled code with its rows and the stack samples that met it, as data: for files that
// other tools read (Runtime::code_images).
//
// An image is one version of a method, also one that was freed during the run. An offset o below
// hot_size is in the hot part; else it is at cold_address + (o - hot_size). A row is a block or a
// call of a body: the method's own, or an inlined one. Each execution of the instruction at a
// block's row is one execution of the block; a block that a pass copied has several rows, whose
// executions add up. A block without a row is unknown: it may have run. Sites are those of profiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uptier/ids.h"
#include "uptier/opcodes.h"
#include "uptier/profile.h"

namespace uptier {

struct ImagedMethod {
  MethodKey key;
  std::string name;
  uint64_t cfg_hash = 0;  // of its control flow, as in profiles
  uint32_t blocks = 0;    // its block sites are 1 to `blocks`; 0: not known

  friend bool operator==(const ImagedMethod&, const ImagedMethod&) = default;
};

// A body in the code.
struct ImageBody {
  uint32_t method = 0;  // in CodeImages::methods
  uint32_t parent = 0;  // the body with the call, earlier in the list
  SiteId site = 0;      // of the call, in the parent

  friend bool operator==(const ImageBody&, const ImageBody&) = default;
};

struct ImageRow {
  enum class Kind : uint8_t {
    kBlock,         // the block starts here
    kContinues,     // a block goes on here, after an inlined call for example
    kCall,          // of a method or a host function
    kIndirectCall,  // through an address
  };
  static constexpr uint32_t kNoCallee = UINT32_MAX;

  uint32_t offset = 0;  // of an instruction
  Kind kind = Kind::kBlock;
  SiteId site = 0;  // 0: not known
  uint32_t body = 0;
  uint32_t returns = 0;         // of calls: the offset after the instruction
  uint32_t callee = kNoCallee;  // of calls: in CodeImages::methods, if it is known
  bool partial = false;         // of blocks: some copies of it have no row

  bool is_call() const { return kind == Kind::kCall || kind == Kind::kIndirectCall; }
  friend bool operator==(const ImageRow&, const ImageRow&) = default;
};

struct CodeImage {
  uint64_t version = 0;  // serial number, as in events
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId loop;                // where it is entered; none: at its start
  bool freed = false;         // other code may have the same addresses
  uint64_t address = 0;       // of the hot part, where it ran last
  uint64_t cold_address = 0;  // of the cold part, if there is one
  uint32_t hot_size = 0;      // bytes
  uint32_t data_at = 0;       // from here to `data_end` lies data: tables, constants
  uint32_t data_end = 0;
  std::vector<uint8_t> bytes;     // the hot part, then the cold part
  std::vector<ImageBody> bodies;  // the first is the method's own
  std::vector<ImageRow> rows;     // by rising offset; at one offset, blocks before calls

  friend bool operator==(const CodeImage&, const CodeImage&) = default;
};

// A frame of a sampled stack: the instruction that was running, or the one to which a call returns.
struct ImageFrame {
  uint32_t code = 0;  // in CodeImages::codes
  uint32_t offset = 0;

  friend bool operator==(const ImageFrame&, const ImageFrame&) = default;
};

// Samples with the same stack.
struct ImagedStack {
  std::vector<ImageFrame> frames;  // innermost first
  uint64_t samples = 0;
  uint64_t ns = 0;  // processor time that they stand for

  friend bool operator==(const ImagedStack&, const ImagedStack&) = default;
};

struct CodeImages {
  std::vector<ImagedMethod> methods;
  std::vector<CodeImage> codes;  // by rising version
  std::vector<ImagedStack> stacks;
  uint64_t elsewhere = 0;     // samples that were not in a body: in host code, in the runtime
  uint64_t lost_samples = 0;  // in code not among `codes`; beyond 262,144 stacks; no memory
  uint64_t lost_codes = 0;    // freed, and not kept: beyond 256 MiB, or no memory
  uint64_t cut_stacks = 0;    // samples whose outermost frames are missing
};

}  // namespace uptier
