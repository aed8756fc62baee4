// The transform of a block and its inverse, and the run lengths before it.
//
// The transform is the byte before each suffix, in the order of the suffixes, so bytes before like
// text are together. The empty suffix comes first. The whole text has no byte before it: its row is
// left out, and its number is what the inverse begins with.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_TRANSFORM_H
#define UPTIER_EXAMPLES_BLOCKSORT_TRANSFORM_H

#include "sort.h"

enum { kRun = 4, kLongestRun = kRun + 255 };

// Four equal bytes are followed by the number of further ones. Takes bytes from `text` until the
// block is full or the text ends; returns how many, and how long the block is.
static NOINLINE uint32_t write_runs(const uint8_t* text, uint32_t size, uint8_t* block,
                                    uint32_t* block_size) {
  uint32_t at = 0, n = 0;
  while (at < size && n + kRun + 1 <= kMostBlock) {
    uint8_t byte = text[at];
    uint32_t run = 1;
    while (at + run < size && run < kLongestRun && text[at + run] == byte) ++run;
    for (uint32_t k = 0; k < run && k < kRun; ++k) block[n++] = byte;
    if (run >= kRun) block[n++] = (uint8_t)(run - kRun);
    at += run;
  }
  *block_size = n;
  return at;
}

// Undoes write_runs; returns the number of bytes.
static NOINLINE uint32_t read_runs(const uint8_t* block, uint32_t block_size, uint8_t* text,
                                   uint32_t room) {
  uint32_t n = 0, equal = 0;
  for (uint32_t i = 0; i < block_size; ++i) {
    uint8_t byte = block[i];
    if (equal == kRun) {
      if (byte > room - n) fail("a block is too long");
      memset(text + n, block[i - 1], byte);
      n += byte;
      equal = 0;
      continue;
    }
    equal = equal > 0 && byte == block[i - 1] ? equal + 1 : 1;
    if (n == room) fail("a block is too long");
    text[n++] = byte;
  }
  return n;
}

// Writes the transform of a block, `size` bytes, to `out`; returns the row of the whole text.
static NOINLINE uint32_t transform(Sorter* s, const uint8_t* block, uint32_t size, uint8_t* out) {
  uint32_t whole = 0;
  sort_block(s, block, size);
  *out++ = block[size - 1];
  for (uint32_t k = 0; k < size; ++k) {
    int32_t suffix = s->suffixes[k];
    if (suffix == 0) {
      whole = k + 1;
    } else {
      *out++ = block[suffix - 1];
    }
  }
  return whole;
}

// Undoes the transform. `next` has room for size + 1 numbers.
static NOINLINE void invert(const uint8_t* rows, uint32_t size, uint32_t whole, uint32_t* next,
                            uint8_t* block) {
  uint32_t start[256] = {0}, sum = 1;  // row 0 is the empty suffix
  for (uint32_t i = 0; i < size; ++i) ++start[rows[i]];
  for (uint32_t c = 0; c < 256; ++c) {
    uint32_t count = start[c];
    start[c] = sum;
    sum += count;
  }
  // Row `row` without its first byte is row next[row]; its first byte is that row's.
  for (uint32_t i = 0; i < size; ++i) {
    uint32_t row = i < whole ? i : i + 1;
    next[start[rows[i]]++] = row;
  }
  for (uint32_t i = 0, row = whole; i < size; ++i) {
    row = next[row];
    block[i] = rows[row < whole ? row : row - 1];
  }
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_TRANSFORM_H
