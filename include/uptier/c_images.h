// c_images.h: compiled code with its rows and the stack samples that met it, in C. Part of uptier.h;
// programs include that. <uptier/code_image.h> says what the parts mean.
#pragma once

#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A method that code or rows name. Frozen, like all structs here but the last.
typedef struct uptier_imaged_method {
  uint64_t module_key;
  uint32_t function_index;
  uint32_t blocks;  // its block sites are 1 to `blocks`; 0: not known
  const char* name;
  uint64_t cfg_hash;  // of its control flow, as in profiles
} uptier_imaged_method;

// A body in code: the method's own is the first, the others are inlined.
typedef struct uptier_image_body {
  uint32_t method;  // in uptier_code_images.methods
  uint32_t parent;  // the body with the call, earlier in the list
  uint32_t site;    // of the call, in the parent
} uptier_image_body;

typedef uint32_t uptier_row_kind;
enum {
  UPTIER_ROW_BLOCK,          // the block starts here
  UPTIER_ROW_CONTINUES,      // a block goes on here, after an inlined call for example
  UPTIER_ROW_CALL,           // of a method or a host function
  UPTIER_ROW_INDIRECT_CALL,  // through an address
};

typedef struct uptier_image_row {
  uint32_t offset;  // of an instruction
  uptier_row_kind kind;
  uint32_t site;  // 0: not known
  uint32_t body;
  uint32_t returns;  // of calls: the offset after the instruction
  uint32_t callee;   // of calls: in uptier_code_images.methods; UINT32_MAX: not known
  uint32_t
      partial;  // of blocks: 1 if some copies of it have no row, so that it ran at least as often
} uptier_image_row;

// One version of a method. A block site of a body without a row of kind UPTIER_ROW_BLOCK is unknown,
// which is not the same as one that never ran.
typedef struct uptier_code_image {
  uint64_t version;  // serial number, as in events
  uptier_tier tier;
  uint32_t instrumented;  // 1: the copy that counts
  uint32_t loop;          // where it is entered: uptier_loop::id - 1; UINT32_MAX: at its start
  uint32_t freed;         // 1: other code may have the same addresses
  uint64_t address;       // of the hot part, where it ran last
  uint64_t cold_address;  // of the cold part, if there is one
  uint32_t hot_size;      // bytes
  uint32_t data_at;       // from here to `data_end` lies data: tables, constants
  uint32_t data_end;
  uint32_t reserved;     // 0
  const uint8_t* bytes;  // the hot part, then the cold part
  size_t byte_count;
  const uptier_image_body* bodies;
  size_t body_count;
  const uptier_image_row* rows;  // by rising offset; blocks before a call at the same one
  size_t row_count;
} uptier_code_image;

// A frame of a sampled stack: the instruction that was running, or the one to which a call returns.
typedef struct uptier_image_frame {
  uint32_t code;  // in uptier_code_images.codes
  uint32_t offset;
} uptier_image_frame;

// Samples with the same stack.
typedef struct uptier_imaged_stack {
  const uptier_image_frame* frames;  // innermost first
  size_t frame_count;
  uint64_t samples;
  uint64_t ns;  // processor time that they stand for
} uptier_imaged_stack;

typedef struct uptier_code_images {
  size_t size;  // of the part that the library has filled in
  const uptier_imaged_method* methods;
  size_t method_count;
  const uptier_code_image* codes;  // by rising version
  size_t code_count;
  const uptier_imaged_stack* stacks;
  size_t stack_count;
  uint64_t elsewhere;     // samples that were not in a body: in host code, in the runtime
  uint64_t lost_samples;  // in code not among `codes`; beyond 262,144 stacks; no memory
  uint64_t lost_codes;    // freed, and not kept: beyond 256 MiB, or no memory
  uint64_t cut_stacks;    // samples whose outermost frames are missing
} uptier_code_images;

// Copies all code with its rows, freed code included, and the stack samples that met it, with the option
// keep_code; without it there are none. `*out` is the caller's, with everything that it points to, until
// uptier_code_images_destroy; it may outlive the runtime. Any thread, but not in a signal handler. Cost: a
// copy of all code, under a lock. Errors: UPTIER_INVALID_ARGUMENT; UPTIER_RESOURCE_EXHAUSTED.
uptier_status uptier_runtime_code_images(uptier_runtime* runtime, const uptier_code_images** out,
                                         uptier_error* error) UPTIER_NOEXCEPT;
// `images` may be NULL.
void uptier_code_images_destroy(const uptier_code_images* images) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
