// phases: one hot method whose branch depends on a parameter, called under a regime that changes
// from phase to phase; an indirect call changes its target at the same time.
// Exercises profiles that go stale: what is seen in one phase is wrong in the next. The program
// counts how often the branch was taken, so a profile can be compared with the truth.
// Size: thousands of calls of the hot method per phase.
#include "program.h"

enum { kTableSize = 64 };

static uint32_t table[kTableSize];

// The hot method. `heavy` selects divisions and table updates, otherwise shifts and adds.
static NOINLINE uint32_t hot(uint32_t heavy, uint32_t x) {
  for (int i = 0; i < 6; ++i) {
    if (heavy != 0) {
      uint32_t divisor = 3 + (x & 31);
      uint32_t* cell = &table[x % kTableSize];
      *cell += x / divisor;
      x = (x ^ *cell) + x % divisor * 2654435761u;
    } else {
      x += (x << 9) ^ (x >> 5);
      x ^= x >> 14;
    }
  }
  return x;
}

typedef uint32_t (*Finish)(uint32_t value);

static uint32_t finish_plain(uint32_t value) { return value; }
static uint32_t finish_rotated(uint32_t value) { return value << 11 | value >> 21; }
static uint32_t finish_folded(uint32_t value) { return (uint32_t)fold(value, value >> 3); }

typedef enum { kNever, kAlways, kEveryOther, kOneIn16, kHalfAtRandom, kRising } Regime;

static uint32_t is_heavy(Regime regime, uint32_t call, uint32_t calls, uint32_t* random) {
  switch (regime) {
    case kNever: return 0;
    case kAlways: return 1;
    case kEveryOther: return call & 1;
    case kOneIn16: return call % 16 == 0;
    case kHalfAtRandom: return next_random(random) >> 31;
    case kRising: return next_random(random) % calls < call;
  }
  return 0;
}

typedef struct Phase {
  const char* name;
  Regime regime;
  Finish finish;
} Phase;

static const Phase kPhases[] = {
    {"never", kNever, finish_plain},        {"always", kAlways, finish_rotated},
    {"never", kNever, finish_plain},        {"every-other", kEveryOther, finish_plain},
    {"one-in-16", kOneIn16, finish_folded}, {"at-random", kHalfAtRandom, finish_rotated},
    {"rising", kRising, finish_folded},     {"always", kAlways, finish_folded},
};

static NOINLINE uint32_t run_phase(const Phase* phase, uint32_t calls, uint32_t seed,
                                   uint32_t* taken) {
  uint32_t random = seed | 1, x = seed;
  for (uint32_t call = 0; call < calls; ++call) {
    uint32_t heavy = is_heavy(phase->regime, call, calls, &random);
    *taken += heavy;
    x = phase->finish(hot(heavy, x) + call);
  }
  return x;
}

int main(int argc, char** argv) {
  uint32_t thousands = size_argument(argc, argv, 50);
  if (thousands > 4000000) thousands = 4000000;
  uint32_t calls = 1000 * thousands;
  uint32_t x = 1234567u;
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < sizeof kPhases / sizeof kPhases[0]; ++i) {
    uint32_t taken = 0;
    x = run_phase(&kPhases[i], calls, x, &taken);
    checksum = fold(checksum, x);
    printf("phases %s: %" PRIu32 " calls, %" PRIu32 " heavy\n", kPhases[i].name, calls, taken);
  }
  for (uint32_t i = 0; i < kTableSize; ++i) checksum = fold(checksum, table[i]);
  print_checksum("phases", checksum);
  return 0;
}
