// Streams of bits, the highest bit of a byte first, and a checksum.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_BITS_H
#define UPTIER_EXAMPLES_BLOCKSORT_BITS_H

#include <string.h>

#include "../program.h"

typedef struct BitWriter {
  uint8_t* bytes;
  uint32_t at, limit;
  uint32_t held, count;  // `count` bits that are not written yet, at the top of `held`
} BitWriter;

typedef struct BitReader {
  const uint8_t* bytes;
  uint32_t at, end;
  uint32_t held, count;
} BitReader;

static NOINLINE void fail(const char* what) {
  fprintf(stderr, "blocksort: %s\n", what);
  exit(1);
}

static void write_byte(BitWriter* w, uint32_t byte) {
  if (w->at == w->limit) fail("there is no room for the packed data");
  w->bytes[w->at++] = (uint8_t)byte;
}

// Writes the lowest `count` bits of `bits`, from 1 to 24; the others must be 0.
static void put_bits(BitWriter* w, uint32_t bits, uint32_t count) {
  while (w->count >= 8) {
    write_byte(w, w->held >> 24);
    w->held <<= 8;
    w->count -= 8;
  }
  w->held |= bits << (32 - w->count - count);
  w->count += count;
}

static void put_wide(BitWriter* w, uint32_t bits) {
  put_bits(w, bits >> 16, 16);
  put_bits(w, bits & 0xffff, 16);
}

static uint32_t finish_writer(BitWriter* w) {
  for (; w->count > 0; w->count -= w->count < 8 ? w->count : 8) {
    write_byte(w, w->held >> 24);
    w->held <<= 8;
  }
  return w->at;
}

// Reads `count` bits, from 1 to 24.
static inline uint32_t get_bits(BitReader* r, uint32_t count) {
  while (r->count < count) {
    if (r->at == r->end) fail("the packed data ends too early");
    r->held |= (uint32_t)r->bytes[r->at++] << (24 - r->count);
    r->count += 8;
  }
  uint32_t bits = r->held >> (32 - count);
  r->held <<= count;
  r->count -= count;
  return bits;
}

static uint32_t get_wide(BitReader* r) {
  uint32_t high = get_bits(r, 16);
  return high << 16 | get_bits(r, 16);
}

static uint32_t crc_table[256];

static void start_crc(void) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i << 24;
    for (int k = 0; k < 8; ++k) crc = crc << 1 ^ ((crc >> 31) ? 0x04c11db7u : 0);
    crc_table[i] = crc;
  }
}

static NOINLINE uint32_t crc_of(const uint8_t* bytes, uint32_t size) {
  uint32_t crc = 0xffffffffu;
  for (uint32_t i = 0; i < size; ++i) crc = crc << 8 ^ crc_table[crc >> 24 ^ bytes[i]];
  return ~crc;
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_BITS_H
