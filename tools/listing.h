// listing.h: machine code for people: instructions in Intel's syntax, with comments from the tables
// of the Code.
//
//   b3, 1,204 executions, @0x4f1
//     0x0040  mov eax, [rbx+rcx+0x10]        ; traps: out of bounds memory access @0x4f1
//     0x0044  jz 0x0060
//     0x0046  call @fib
//
// The columns are offsets from the start of the code. Sites are named as in a dump of the probes.
#pragma once

#include <functional>
#include <string>

#include "jit/code/code.h"

namespace uptier::tools {

struct ListingNames {
  // Says what a site is, and how often it ran if that is known.
  std::function<std::string(SiteId site, uint32_t body)> site;
  // Names an address outside of the code; "" when it is not known.
  std::function<std::string(const void* address)> address;
};

std::string listing(const jit::Code& code, const ListingNames& names);

}  // namespace uptier::tools
