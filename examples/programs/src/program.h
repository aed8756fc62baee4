// The benchmark programs share this: the size argument, a random source and a checksum.
//
// Every type has a fixed width and no output depends on addresses, locale or time, so a native
// build and a wasm build of a program print the same bytes.
#ifndef UPTIER_EXAMPLES_PROGRAM_H
#define UPTIER_EXAMPLES_PROGRAM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Keeps a function a function: its calls are what the program wants to exercise.
#define NOINLINE __attribute__((noinline))

// Returns the size given on the command line, or `test_size` without one. Exits with 2 when the
// argument is not a number in [1, 10^9].
static inline uint32_t size_argument(int argc, char** argv, uint32_t test_size) {
  if (argc < 2) return test_size;
  char* end = argv[1];
  unsigned long size = strtoul(argv[1], &end, 10);
  if (argc == 2 && end != argv[1] && *end == '\0' && size >= 1 && size <= 1000000000ul) {
    return (uint32_t)size;
  }
  fprintf(stderr, "usage: PROGRAM [SIZE], SIZE in 1..1000000000\n");
  exit(2);
}

// Returns the next number of a 32-bit xorshift sequence; `*state` must not be 0.
static inline uint32_t next_random(uint32_t* state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

// Returns `hash` with `value` folded in; the order of the values matters.
static inline uint64_t fold(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ (hash >> 29);
}

static inline void print_checksum(const char* name, uint64_t value) {
  printf("%s checksum %016" PRIx64 "\n", name, value);
}

#endif  // UPTIER_EXAMPLES_PROGRAM_H
