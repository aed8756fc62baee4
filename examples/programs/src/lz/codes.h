// Numbers as codes with further bits, and checksums of data.
//
// Numbers below 4 are their own codes. From there on each power of two has two codes, which are
// followed by the bits below the leading two.
#ifndef UPTIER_EXAMPLES_LZ_CODES_H
#define UPTIER_EXAMPLES_LZ_CODES_H

#include "bits.h"

static inline uint32_t code_of(uint32_t number) {
  if (number < 4) return number;
  uint32_t log = log2_of(number);
  return 2 * log + (number >> (log - 1) & 1);
}

static inline uint32_t further_bits(uint32_t code) { return code < 4 ? 0 : code / 2 - 1; }

static inline uint32_t first_of_code(uint32_t code) {
  return code < 4 ? code : (2 | (code & 1)) << (code / 2 - 1);
}

static inline void put_further(BitWriter* w, uint32_t number, uint32_t code) {
  put_bits(w, number - first_of_code(code), further_bits(code));
}

// CRC-32, four bytes at a time.
static uint32_t crc_table[4][256];

static void start_crc(void) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ ((crc & 1) ? 0xedb88320u : 0);
    crc_table[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (int t = 1; t < 4; ++t) {
      uint32_t crc = crc_table[t - 1][i];
      crc_table[t][i] = crc >> 8 ^ crc_table[0][crc & 255];
    }
  }
}

static NOINLINE uint32_t crc_of(const uint8_t* bytes, uint32_t size) {
  uint32_t crc = 0xffffffffu, i = 0;
  for (; i + 4 <= size; i += 4) {
    crc ^= load32(bytes + i);
    crc = crc_table[3][crc & 255] ^ crc_table[2][crc >> 8 & 255] ^ crc_table[1][crc >> 16 & 255] ^
          crc_table[0][crc >> 24];
  }
  for (; i < size; ++i) crc = crc >> 8 ^ crc_table[0][(crc ^ bytes[i]) & 255];
  return ~crc;
}

// Adler-32: sums modulo 65521.
static NOINLINE uint32_t adler_of(const uint8_t* bytes, uint32_t size) {
  uint32_t a = 1, b = 0;
  while (size > 0) {
    uint32_t part = size < 5552 ? size : 5552;
    for (uint32_t i = 0; i < part; ++i) {
      a += bytes[i];
      b += a;
    }
    a %= 65521;
    b %= 65521;
    bytes += part;
    size -= part;
  }
  return b << 16 | a;
}

#endif  // UPTIER_EXAMPLES_LZ_CODES_H
