// Streams of bits, the lowest bit of a byte first.
//
// One reader begins at the start of a stream. The other one begins at the end and reads the bits in
// the opposite order, for an entropy coder that works like a stack.
#ifndef UPTIER_EXAMPLES_LZ_BITS_H
#define UPTIER_EXAMPLES_LZ_BITS_H

#include <string.h>

#include "../program.h"

// Bytes beyond `limit` are counted, but not written.
typedef struct BitWriter {
  uint8_t* bytes;
  uint32_t at, limit;
  uint64_t held;  // bits that are not written yet
  uint32_t count;
} BitWriter;

typedef struct BitReader {
  const uint8_t* bytes;
  uint32_t at, end;
  uint64_t held;
  uint32_t count;
} BitReader;

typedef struct BackReader {
  const uint8_t* bytes;
  uint32_t size;
  int64_t bits;  // that are not read yet
} BackReader;

static NOINLINE void fail(const char* what) {
  fprintf(stderr, "lz: %s\n", what);
  exit(1);
}

static inline uint32_t log2_of(uint32_t x) { return 31 - (uint32_t)__builtin_clz(x); }

static inline uint32_t load32(const uint8_t* at) {
  uint32_t x;
  memcpy(&x, at, sizeof x);
  return x;
}
static inline uint64_t load64(const uint8_t* at) {
  uint64_t x;
  memcpy(&x, at, sizeof x);
  return x;
}

static void start_writer(BitWriter* w, uint8_t* bytes, uint32_t limit) {
  *w = (BitWriter){bytes, 0, limit, 0, 0};
}

// Writes the lowest `count` bits of `bits`, at most 32; the others must be 0.
static inline void put_bits(BitWriter* w, uint32_t bits, uint32_t count) {
  w->held |= (uint64_t)bits << w->count;
  w->count += count;
  while (w->count >= 8) {
    if (w->at < w->limit) w->bytes[w->at] = (uint8_t)w->held;
    ++w->at;
    w->held >>= 8;
    w->count -= 8;
  }
}

// Fills the last byte and returns the number of bytes.
static uint32_t finish_writer(BitWriter* w) {
  if (w->count > 0) put_bits(w, 0, 8 - w->count);
  if (w->at > w->limit) fail("there is no room for the packed data");
  return w->at;
}

static void start_reader(BitReader* r, const uint8_t* bytes, uint32_t size) {
  *r = (BitReader){bytes, 0, size, 0, 0};
}

// Holds at least 32 bits; there are zeros after the end.
static inline void refill(BitReader* r) {
  while (r->count <= 32) {
    uint64_t byte = r->at < r->end ? r->bytes[r->at] : 0;
    ++r->at;
    r->held |= byte << r->count;
    r->count += 8;
  }
}

static inline uint32_t peek_bits(const BitReader* r, uint32_t count) {
  return (uint32_t)r->held & ((1u << count) - 1);
}

static inline void drop_bits(BitReader* r, uint32_t count) {
  r->held >>= count;
  r->count -= count;
}

// Reads `count` bits, at most 24.
static inline uint32_t get_bits(BitReader* r, uint32_t count) {
  refill(r);
  uint32_t bits = peek_bits(r, count);
  drop_bits(r, count);
  return bits;
}

// Returns the byte after the last one of which a bit was read.
static uint32_t finish_reader(const BitReader* r) {
  uint32_t at = r->at - r->count / 8;
  if (at > r->end) fail("the packed data ends too early");
  return at;
}

static void start_back_reader(BackReader* r, const uint8_t* bytes, uint32_t size, uint32_t bits) {
  *r = (BackReader){bytes, size, bits};
  if (bits > 8 * (uint64_t)size) fail("the packed data ends too early");
}

// Reads the `count` bits, at most 24, that were written last.
static inline uint32_t get_back(BackReader* r, uint32_t count) {
  r->bits -= count;
  if (r->bits < 0) fail("the packed data ends too early");
  uint32_t byte = (uint32_t)r->bits >> 3, shift = (uint32_t)r->bits & 7;
  uint32_t bits;
  if (byte + 4 <= r->size) {
    bits = load32(r->bytes + byte);
  } else {
    bits = 0;
    for (uint32_t k = 0; byte + k < r->size; ++k) bits |= (uint32_t)r->bytes[byte + k] << (8 * k);
  }
  return bits >> shift & ((1u << count) - 1);
}

#endif  // UPTIER_EXAMPLES_LZ_BITS_H
