#include "jit/regalloc/parallel_move.h"

#include <algorithm>

namespace uptier::jit::machine {
namespace {

bool is_memory(Location l) { return !l.is_reg() && !l.is_constant(); }

// A cycle that carries memory-to-memory moves needs the vector scratch register for those.
// Otherwise the scratch is of the saved register's own class, because moving to the other class and
// back costs more.
Location scratch_for(Location saved, std::span<const Move> moves) {
  bool carries = std::any_of(moves.begin(), moves.end(),
                             [](const Move& m) { return is_memory(m.from) && is_memory(m.to); });
  bool vector = saved.is_reg() && class_of(saved.index()) == RegClass::kFloat;
  return vector && !carries ? kVectorCycleScratch : kCycleScratch;
}

}  // namespace

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
    Location saved = open.front().from, scratch = scratch_for(saved, moves);
    out.push_back({0, 0, saved, scratch});
    for (Move& m : open) {
      if (m.from == saved) m.from = scratch;
    }
  }
  out.insert(out.end(), constants.begin(), constants.end());
  return out;
}

}  // namespace uptier::jit::machine
