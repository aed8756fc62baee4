// Moving to the front, and run lengths of the zeros that this makes.
//
// A byte is replaced by its place in a list, and moves to the front of it. Runs of zeros are written as
// digits 1 and 2 of a number (kDigitOne and kDigitTwo), the lowest first; other places are one greater.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_FRONT_H
#define UPTIER_EXAMPLES_BLOCKSORT_FRONT_H

#include "transform.h"

enum { kDigitOne = 0, kDigitTwo = 1, kMostFront = kMostBlock + 1 };

typedef struct FrontList {
  uint8_t bytes[256];
  uint32_t count;
} FrontList;

// Lists the bytes that occur, in their order.
static void start_list(FrontList* l, const uint8_t* used) {
  l->count = 0;
  for (uint32_t c = 0; c < 256; ++c) {
    if (used[c]) l->bytes[l->count++] = (uint8_t)c;
  }
}

static uint32_t put_run(uint32_t run, uint16_t* symbols, uint32_t n) {
  for (; run > 0; run = (run - 1) / 2) symbols[n++] = (run & 1) ? kDigitOne : kDigitTwo;
  return n;
}

// Returns the number of symbols; the last one is the end of the block, which is list count + 1.
static NOINLINE uint32_t move_to_front(const uint8_t* rows, uint32_t size, const uint8_t* used,
                                       uint16_t* symbols) {
  FrontList list;
  uint32_t n = 0, run = 0;
  start_list(&list, used);
  for (uint32_t i = 0; i < size; ++i) {
    uint8_t byte = rows[i];
    if (list.bytes[0] == byte) {
      ++run;
      continue;
    }
    n = put_run(run, symbols, n);
    run = 0;
    uint8_t moved = list.bytes[0];
    uint32_t place = 0;
    do {
      ++place;
      uint8_t next = list.bytes[place];
      list.bytes[place] = moved;
      moved = next;
    } while (moved != byte);
    list.bytes[0] = byte;
    symbols[n++] = (uint16_t)(place + 1);
  }
  n = put_run(run, symbols, n);
  symbols[n++] = (uint16_t)(list.count + 1);
  return n;
}

// Undoes move_to_front as symbols come in.
typedef struct FrontReader {
  FrontList list;
  uint8_t* rows;
  uint32_t size, room;
  uint32_t run, digit;  // of the run that is being read; digit 0 if there is none
} FrontReader;

static void end_run(FrontReader* f) {
  if (f->run > f->room - f->size) fail("a block is too long");
  memset(f->rows + f->size, f->list.bytes[0], f->run);
  f->size += f->run;
  f->run = f->digit = 0;
}

// Returns 0 at the end of the block.
static inline int take_symbol(FrontReader* f, uint32_t symbol) {
  if (symbol <= kDigitTwo) {
    if (f->digit == 0) f->digit = 1;
    if (f->digit > kMostBlock) fail("a run is too long");
    f->run += f->digit << symbol;
    f->digit *= 2;
    return 1;
  }
  if (f->digit > 0) end_run(f);
  uint32_t place = symbol - 1;
  if (place == f->list.count) return 0;
  if (f->size == f->room) fail("a block is too long");
  uint8_t byte = f->list.bytes[place];
  memmove(f->list.bytes + 1, f->list.bytes, place);
  f->list.bytes[0] = byte;
  f->rows[f->size++] = byte;
  return 1;
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_FRONT_H
