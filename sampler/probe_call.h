// ProbeCall: the arguments of a C function that compiled code calls to observe something.
//
// The probe routines (jit/code/probe_routines.h) save every general register that C may change, and
// no vector register: the functions are compiled without vector instructions.
#pragma once

#include <cstdint>

namespace uptier::sampler {

struct ThreadContext;

// Lies on the stack of the caller. `offset` is the distance of the site's first word from the start
// of the slab, in bytes.
struct ProbeCall {
  uint64_t offset = 0;
  uint64_t value = 0;  // the observed value; the frame (rbp) for loops
  uint64_t extra = 0;  // depends on the function
  uint64_t place = 0;  // log probes only: method << 32 | site

  uint64_t* words(uint64_t* slab) const { return slab + offset / 8; }
};

}  // namespace uptier::sampler
