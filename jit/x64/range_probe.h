// The code that counts in the words of a range site (sampler/site_counts.h).
#pragma once

#include <cstdint>

#include "jit/x64/code_buffer.h"
#include "sampler/site_counts.h"

namespace uptier::jit {

// Counts a value. `rank` holds it with its sign bit flipped, so that 0 is neutral for every word,
// and is clobbered. `word(n)` is the operand of the site's n-th word. Changes the flags.
template <typename Word>
void count_in_range(CodeBuffer& b, Assembler& a, const Gp& rank, Word word) {
  auto raise = [&](const Mem& to) {
    Label done = b.new_label();
    a.cmp(to, rank);
    a.short_().jae(done);
    a.mov(to, rank);
    b.bind(done);
  };
  a.inc(word(sampler::kRangeCount));
  a.add(word(sampler::kRangeSumLow), rank);
  a.adc(word(sampler::kRangeSumHigh), asmjit::imm(0));
  raise(word(sampler::kRangeGreatest));
  a.not_(rank);
  raise(word(sampler::kRangeLeast));
}

}  // namespace uptier::jit
