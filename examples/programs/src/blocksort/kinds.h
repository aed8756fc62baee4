// Data that is hard to sort, or easy: bases, periods, and runs.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_KINDS_H
#define UPTIER_EXAMPLES_BLOCKSORT_KINDS_H

#include "../data.h"

// Four letters without order, with copies of earlier parts in which some letters changed.
static void put_bases(Sink* s) {
  while (s->at < s->size) {
    uint32_t count = 200 + below(s, 800);
    if (s->at > 4000 && below(s, 3) == 0) {
      uint32_t from = below(s, s->at - 1200);
      for (uint32_t k = 0; k < count; ++k) {
        put_byte(s, below(s, 20) == 0 ? (uint32_t) "acgt"[below(s, 4)] : s->bytes[from + k]);
      }
    } else {
      for (uint32_t k = 0; k < count; ++k) put_byte(s, (uint32_t) "acgt"[below(s, 4)]);
    }
  }
}

// A text that repeats itself for long.
static void put_periods(Sink* s) {
  while (s->at < s->size) {
    uint32_t period = 3 + below(s, 40), count = 2000 + below(s, 3000), from = s->at;
    for (uint32_t k = 0; k < period; ++k) put_byte(s, 'a' + below(s, 5));
    for (uint32_t k = 0; k < count && s->at < s->size; ++k) put_byte(s, s->bytes[from + k]);
  }
}

// Runs of equal bytes of all lengths, as in a drawing.
static void put_lines(Sink* s) {
  uint32_t color = 0;
  while (s->at < s->size) {
    uint32_t count = 1 + skewed(s, below(s, 6) == 0 ? 700 : 24);
    color = (color + 1 + skewed(s, 7)) % 16;
    for (uint32_t k = 0; k < count; ++k) put_byte(s, color * 17);
  }
}

static const DataKind kHardKinds[] = {
    {"bases", put_bases}, {"periods", put_periods}, {"lines", put_lines}};
enum { kHardKindCount = sizeof kHardKinds / sizeof kHardKinds[0] };

#endif  // UPTIER_EXAMPLES_BLOCKSORT_KINDS_H
