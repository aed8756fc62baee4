// pseudo_probe: `uptier run --pseudo-probe DIR`: files from which llvm-profgen makes a profile.
//
//   code.elf                   all code of the run, with pseudo-probes (profile/formats/probe_elf.h)
//   samples.unsymbolized.txt   the stack samples, flat (profile/formats/probe_samples.h)
//   samples.perfscript.txt     the same, with contexts
#pragma once

#include <string>

#include "uptier/runtime.h"

namespace uptier::tools {

// Makes the directory if there is none. Returns kOk, or kFailed after a message.
int make_probe_folder(const std::string& folder);

// Writes the files, and says on stderr what they lack. The runtime has Options::keep_code. Returns
// kOk, or kFailed after a message.
int write_pseudo_probes(Runtime& runtime, const std::string& folder);

}  // namespace uptier::tools
