// probe_sections: the two sections in which LLVM looks for pseudo-probes.
//
//   .pseudo_probe_desc  of each function:  GUID (8 bytes) | hash (8 bytes) | uleb length | name
//   .pseudo_probe       of each part:      record
//
//   record:   GUID (8 bytes) | uleb number of probes | uleb number of inlined bodies |
//             probes | for each inlined body: uleb id of the call, record
//   probe:    uleb id | kind + 16 * attributes + 128 if the address is a distance | address
//   address:  8 bytes, or a signed LEB128 distance from the probe before, in whatever record
//
// The first probe of a part has an address, all others distances. A cold part begins with a
// sentinel: a probe that counts nothing, at the start of the part.
//
// Format: llvm/lib/MC/MCPseudoProbe.cpp of LLVM 22.
#pragma once

#include <string>

#include "profile/formats/probed_code.h"

namespace uptier::profile {

std::string probe_desc_section(const ProbedFile& file);
std::string probe_section(const ProbedFile& file);

}  // namespace uptier::profile
