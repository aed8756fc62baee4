// Holes, the parts of ranges that fit into holes of others, compared with a plain vector that is
// searched from end to end.
#include "jit/regalloc/holes.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random.h"

namespace uptier::test::holes_test {
namespace {

using jit::machine::Holes;

constexpr unsigned kRegs = 3;

// The same, by linear search.
class PlainHoles {
 public:
  uint32_t first_due(unsigned reg) const {
    uint32_t first = Holes::kNone;
    for (uint32_t p : parts_[reg]) first = std::min(first, due_.at(p));
    return first;
  }
  void add(unsigned reg, uint32_t part, uint32_t due) {
    parts_[reg].push_back(part);
    due_[part] = due;
  }
  template <typename Visit>
  void sweep(unsigned reg, uint32_t limit, Visit visit) {
    auto& parts = parts_[reg];
    for (size_t n = 0; n < parts.size();) {
      uint32_t part = parts[n];
      uint32_t due = due_[part] < limit ? visit(part) : due_[part];
      due_[part] = due;
      if (due != Holes::kNone) {
        ++n;
        continue;
      }
      parts[n] = parts.back();
      parts.pop_back();
    }
  }
  std::vector<uint32_t> due_before(unsigned reg, uint32_t limit) const {
    std::vector<uint32_t> some;
    for (uint32_t p : parts_[reg]) {
      if (due_.at(p) < limit) some.push_back(p);
    }
    return some;
  }

 private:
  std::vector<uint32_t> parts_[kRegs];
  std::map<uint32_t, uint32_t> due_;
};

// Advances time, with random additions and sweeps of both versions: parts that are due are removed
// or get a later due time, and parts are also removed early. Returns the number of parts visited.
size_t live_a_life(uint64_t seed) {
  Random random(seed);
  Holes holes;
  PlainHoles plain;
  uint32_t parts = 0, now = 0;
  std::vector<uint32_t> seen, expected;
  auto sweep_both = [&](unsigned reg, uint32_t limit, unsigned taken) {
    uint64_t salt = random.next();
    auto visit = [&](std::vector<uint32_t>& into, uint32_t part) {
      into.push_back(part);
      Random own(salt + part);
      bool goes = own.chance(taken);
      return goes ? Holes::kNone : std::max(limit, now + 1) + static_cast<uint32_t>(own.below(60));
    };
    holes.sweep(reg, limit, [&](uint32_t p) { return visit(seen, p); });
    plain.sweep(reg, limit, [&](uint32_t p) { return visit(expected, p); });
  };
  for (uint32_t step = 0; step < 3'000; ++step) {
    auto reg = static_cast<unsigned>(random.below(kRegs));
    uint32_t ahead = now + 1 + static_cast<uint32_t>(random.below(80));
    if (random.chance(60)) {
      holes.add(reg, parts, ahead);
      plain.add(reg, parts++, ahead);
    } else if (random.chance(30)) {
      sweep_both(reg, ahead, random.chance(50) ? 90 : 20);
    } else {
      now += static_cast<uint32_t>(random.below(4));
      for (unsigned r = 0; r < kRegs; ++r) sweep_both(r, now + 1, 70);
    }
    EXPECT_EQ(plain.due_before(reg, ahead), holes.due_before(reg, ahead)) << "step " << step;
    EXPECT_EQ(plain.first_due(reg), holes.first_due(reg)) << "step " << step;
    EXPECT_EQ(expected, seen) << "step " << step;
    if (expected != seen) break;
  }
  return seen.size();
}

TEST(Holes, are_visited_in_the_order_of_a_plain_list) {
  size_t visited = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) visited += live_a_life(seed);
  EXPECT_GT(visited, 20'000u);
}

}  // namespace
}  // namespace uptier::test::holes_test
