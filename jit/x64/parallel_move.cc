#include "jit/x64/parallel_move.h"

#include <algorithm>

namespace uptier::jit::x64 {

std::vector<Move> sequentialize(std::span<const Move> moves) {
  std::vector<Move> open, out, constants;
  for (const Move& m : moves) {
    if (m.from == m.to) continue;
    (m.from.is_constant() ? constants : open).push_back({0, 0, m.from, m.to});
  }
  auto is_read = [&](Location l) {
    return std::any_of(open.begin(), open.end(), [&](const Move& m) { return m.from == l; });
  };
  while (!open.empty()) {
    bool progress = false;
    for (size_t i = 0; i < open.size();) {
      Move m = open[i];
      if (is_read(m.to)) {
        ++i;
        continue;
      }
      out.push_back(m);
      open.erase(open.begin() + static_cast<ptrdiff_t>(i));
      progress = true;
    }
    if (progress) continue;
    Location saved = open.front().from;
    out.push_back({0, 0, saved, kCycleScratch});
    for (Move& m : open) {
      if (m.from == saved) m.from = kCycleScratch;
    }
  }
  out.insert(out.end(), constants.begin(), constants.end());
  return out;
}

}  // namespace uptier::jit::x64
