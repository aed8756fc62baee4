// onecall: spends its whole life in a single call of one function without calls in it.
// Exercises on-stack replacement: no later call will ever enter better code, so a virtual machine
// that changes code only at function entry runs all of this in the code it started with.
// Size: number of rounds.
#include "program.h"

enum { kSieveSize = 16384, kOrder = 28, kPoints = 40, kSeries = 2000 };

typedef struct Result {
  uint32_t primes;
  uint64_t collatz_steps;
  uint32_t distance;
  double trace;
  uint64_t hash;
} Result;

static uint8_t composite[kSieveSize];
static double left[kOrder][kOrder], right[kOrder][kOrder], product[kOrder][kOrder];
static uint32_t distances[kPoints][kPoints];

// One round: a sieve, Collatz sequences, a matrix product, all shortest paths in a small graph, a
// random series with an unpredictable branch. Everything is written out in place on purpose.
static NOINLINE void whole_life(uint32_t rounds, Result* result) {
  uint32_t random = 88172645u;
  Result r = {0};
  for (uint32_t round = 0; round < rounds; ++round) {
    // Sieve: even numbers start as composite.
    for (uint32_t i = 0; i < kSieveSize; ++i) composite[i] = (uint8_t)((i & 1) ^ 1);
    for (uint32_t i = 3; i * i < kSieveSize; i += 2) {
      if (composite[i] != 0) continue;
      for (uint32_t j = i * i; j < kSieveSize; j += 2 * i) composite[j] = 1;
    }
    uint32_t primes = 1;
    for (uint32_t i = 3; i < kSieveSize; i += 2) {
      if (composite[i] == 0) {
        ++primes;
        r.hash += (uint64_t)i * (round + 1);
      }
    }
    r.primes += primes;

    // Collatz sequences in 64 bits, from starts that differ between rounds.
    for (uint64_t start = 1; start <= 120; ++start) {
      uint64_t x = start + 120 * (uint64_t)(round & 1023);
      while (x != 1) {
        x = (x & 1) != 0 ? 3 * x + 1 : x >> 1;
        ++r.collatz_steps;
      }
    }

    // Matrix product in doubles.
    for (int i = 0; i < kOrder; ++i) {
      for (int j = 0; j < kOrder; ++j) {
        left[i][j] = (double)((i * 3 + j + (int)(round & 7)) % 11) * 0.5;
        right[i][j] = (double)((i + j * 5) % 7) - 3.0;
      }
    }
    for (int i = 0; i < kOrder; ++i) {
      for (int j = 0; j < kOrder; ++j) {
        double sum = 0.0;
        for (int k = 0; k < kOrder; ++k) sum += left[i][k] * right[k][j];
        product[i][j] = sum;
      }
    }
    for (int i = 0; i < kOrder; ++i)
      r.trace += product[i][i] / (1.0 + product[i][(i * 7) % kOrder]);

    // All shortest paths in a random graph.
    for (int i = 0; i < kPoints; ++i) {
      for (int j = 0; j < kPoints; ++j) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        distances[i][j] = i == j ? 0 : 1 + (random & 0xfff);
      }
    }
    for (int k = 0; k < kPoints; ++k) {
      for (int i = 0; i < kPoints; ++i) {
        for (int j = 0; j < kPoints; ++j) {
          uint32_t through = distances[i][k] + distances[k][j];
          if (through < distances[i][j]) distances[i][j] = through;
        }
      }
    }
    for (int i = 0; i < kPoints; ++i) r.distance += distances[i][(i * 3 + 1) % kPoints];

    // A random series: which way the branch goes changes slowly from round to round.
    uint32_t threshold = (round * 37u) & 0xff;
    for (uint32_t i = 0; i < kSeries; ++i) {
      random ^= random << 13;
      random ^= random >> 17;
      random ^= random << 5;
      if ((random & 0xff) < threshold) {
        r.hash = (r.hash ^ random) * UINT64_C(0x9E3779B97F4A7C15);
      } else {
        r.hash = (r.hash << 7 | r.hash >> 57) + i;
      }
    }
  }
  *result = r;
}

int main(int argc, char** argv) {
  uint32_t rounds = size_argument(argc, argv, 80);
  Result r;
  whole_life(rounds, &r);
  printf("onecall %" PRIu32 " rounds: %" PRIu32 " primes, %" PRIu64 " steps, distance %" PRIu32
         ", trace %.6f\n",
         rounds, r.primes, r.collatz_steps, r.distance, r.trace);
  uint64_t checksum = fold(fold(r.hash, r.collatz_steps), (uint64_t)(int64_t)(r.trace * 1e6));
  print_checksum("onecall", fold(checksum, r.distance));
  return 0;
}
