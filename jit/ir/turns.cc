#include "jit/ir/turns.h"

#include <algorithm>
#include <bit>

namespace uptier::jit {

uint64_t pack_turns(const std::array<uint64_t, kTurnValues>& counts) {
  auto most = static_cast<uint32_t>(std::bit_width(*std::ranges::max_element(counts)));
  uint32_t shift = most > 16 ? most - 16 : 0;
  uint64_t packed = 0;
  for (uint32_t pair = 0; pair < kTurnValues; ++pair) {
    packed |= counts[pair] >> shift << 16 * pair;
  }
  return packed;
}

std::array<uint64_t, kTurnValues> turns_of(const Inst& i) {
  std::array<uint64_t, kTurnValues> counts;
  for (uint32_t pair = 0; pair < kTurnValues; ++pair) {
    counts[pair] = i.imm >> 16 * pair & 0xffff;
  }
  return counts;
}

uint64_t misses_of(const std::array<uint64_t, kTurnValues>& n) {
  return std::min(n[0], n[1]) + std::min(n[2], n[3]);
}

}  // namespace uptier::jit
