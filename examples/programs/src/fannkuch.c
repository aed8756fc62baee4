// fannkuch: for many permutations of 11 numbers, counts how many prefix reversals bring 0 to the
// front (reverse the prefix whose length the first number names, until it is 0).
// Exercises byte loads and stores, data-dependent loop trip counts and short reversal loops.
// Built for plain MVP wasm. Size: thousands of permutations.
#include "program.h"

enum { kLength = 11 };

typedef struct Permutations {
  uint8_t values[kLength];
  uint8_t counts[kLength];
  uint32_t level;
} Permutations;

// Moves on to the next permutation, one swap away (Heap's method). Starts over after the last.
static void advance(Permutations* p) {
  while (p->counts[p->level] >= p->level) {
    p->counts[p->level] = 0;
    if (++p->level == kLength) p->level = 1;
  }
  uint32_t other = (p->level & 1) != 0 ? p->counts[p->level] : 0;
  uint8_t kept = p->values[other];
  p->values[other] = p->values[p->level];
  p->values[p->level] = kept;
  ++p->counts[p->level];
  p->level = 1;
}

static NOINLINE uint32_t count_flips(const uint8_t* values) {
  uint8_t work[kLength];
  for (int i = 0; i < kLength; ++i) work[i] = values[i];
  uint32_t flips = 0;
  while (work[0] != 0) {
    uint32_t low = 0, high = work[0];
    while (low < high) {
      uint8_t kept = work[low];
      work[low++] = work[high];
      work[high--] = kept;
    }
    ++flips;
  }
  return flips;
}

int main(int argc, char** argv) {
  uint64_t total = UINT64_C(1000) * size_argument(argc, argv, 200);
  Permutations p = {.level = 1};
  // Starting from a rotated order visits long flip sequences early.
  for (int i = 0; i < kLength; ++i) p.values[i] = (uint8_t)((i * 4 + 3) % kLength);
  uint32_t most = 0;
  int64_t alternating = 0;
  for (uint64_t i = 0; i < total; ++i) {
    uint32_t flips = count_flips(p.values);
    if (flips > most) most = flips;
    alternating += (i & 1) == 0 ? (int64_t)flips : -(int64_t)flips;
    advance(&p);
  }
  printf("fannkuch %" PRIu64 " permutations: most flips %" PRIu32 ", alternating sum %" PRId64 "\n",
         total, most, alternating);
  print_checksum("fannkuch", fold(most, (uint64_t)alternating));
  return 0;
}
