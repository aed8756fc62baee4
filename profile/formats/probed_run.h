// probed_run: from the code and the samples of a run to what the writers of LLVM's files need.
//
// Code in service keeps its addresses. Code that was freed keeps them if nothing else lies there, the
// newest first; otherwise it is put after all other code, and its samples with it.
//
// Tables and constants after the code are int3 here: readers would take them for instructions.
//
// A sample counts for the block that its address lies in, and for blocks that start at the same
// instruction: they have run as well. Where a block goes on after an inlined call, the sample counts for
// the nearest start of that block before; in a prologue, for the first block. Its count is the time that it stands for, in microseconds.
#pragma once

#include "profile/formats/probe_samples.h"
#include "profile/formats/probed_code.h"
#include "uptier/code_image.h"

namespace uptier::profile {

struct ProbedRun {
  ProbedFile file;
  ProbeSamples samples;
  uint64_t left_out = 0;   // rows whose site, or the site of a call around them, LLVM cannot number
  uint64_t partial = 0;    // rows of blocks that ran at least as often as their rows say
  uint64_t displaced = 0;  // codes that could not keep their addresses
};

ProbedRun probed_run(const CodeImages& images);

}  // namespace uptier::profile
