#include "native.h"

ARRAY(words, int64_t)

// Compiled for any n: no copy is made for the only n that main passes.
__attribute__((noipa)) static int64_t sieve(int64_t n) {
  struct words composite;
  words_make(&composite, n, 0);
  int64_t count = 0;
  for (int64_t i = 2; i < n; ++i) {
    if (*words_at(&composite, i)) continue;
    count = add(count, 1);
    for (int64_t j = add(i, i); j < n; j = add(j, i)) *words_at(&composite, j) = 1;
  }
  free(composite.data);
  return count;
}

int main(int argc, char** argv) {
  int64_t rounds = arg(argc, argv, 20), last = 0;
  for (int64_t round = 0; round < rounds; ++round) last = sieve(5000);
  printf("%" PRId64 "\n", last);
}
