// Asymmetric numeral systems, by tables.
//
// A state is a number in [kStates, 2 * kStates). Of these, a symbol owns as many as its share of the
// counts. To encode a symbol, bits are shifted out of the state until it selects one that the symbol
// owns; the decoder gets the symbol from the state and shifts the bits in again. So it decodes the
// symbols in the opposite order.
#ifndef UPTIER_EXAMPLES_LZ_ANS_H
#define UPTIER_EXAMPLES_LZ_ANS_H

#include "bits.h"

enum { kStateBits = 10, kStates = 1 << kStateBits, kMostCodes = 40 };

typedef struct Shares {
  uint32_t codes;
  uint16_t share[kMostCodes];  // of kStates; 0 if the code does not occur
} Shares;

typedef struct AnsEncoder {
  uint16_t share[kMostCodes];
  uint16_t first[kMostCodes];  // where the states of a code begin in `next`
  uint16_t next[kStates];
} AnsEncoder;

typedef struct AnsEntry {
  uint16_t base;
  uint8_t code, bits;
} AnsEntry;

typedef struct AnsDecoder {
  AnsEntry entries[kStates];
} AnsDecoder;

// Scales counts to shares: each code that occurs has at least 1, and the sum is kStates.
static NOINLINE void scale_counts(Shares* s, const uint32_t* counts, uint32_t codes) {
  uint64_t total = 0;
  uint32_t sum = 0, largest = 0;
  memset(s, 0, sizeof *s);
  s->codes = codes;
  for (uint32_t c = 0; c < codes; ++c) total += counts[c];
  if (total == 0) return;
  for (uint32_t c = 0; c < codes; ++c) {
    if (counts[c] == 0) continue;
    uint32_t share = (uint32_t)(((uint64_t)counts[c] * kStates + total / 2) / total);
    s->share[c] = (uint16_t)(share > 0 ? share : 1);
    sum += s->share[c];
    if (counts[c] > counts[largest]) largest = c;
  }
  // Rounding is made up for by the largest share, and if that is not enough by all that can give.
  while (sum > kStates) {
    uint32_t most = largest;
    for (uint32_t c = 0; c < codes; ++c) {
      if (s->share[c] > s->share[most]) most = c;
    }
    --s->share[most];
    --sum;
  }
  s->share[largest] = (uint16_t)(s->share[largest] + (kStates - sum));
}

// Spreads the states over the codes.
static void spread(const Shares* s, uint8_t* code_of) {
  uint32_t at = 0;
  for (uint32_t c = 0; c < s->codes; ++c) {
    for (uint32_t k = 0; k < s->share[c]; ++k) {
      code_of[at] = (uint8_t)c;
      at = (at + kStates / 2 + kStates / 8 + 3) & (kStates - 1);
    }
  }
}

static NOINLINE void build_ans_encoder(AnsEncoder* e, const Shares* s) {
  uint8_t code_of[kStates];
  uint16_t used[kMostCodes] = {0};
  uint32_t first = 0;
  spread(s, code_of);
  for (uint32_t c = 0; c < s->codes; ++c) {
    e->share[c] = s->share[c];
    e->first[c] = (uint16_t)first;
    first += s->share[c];
  }
  for (uint32_t state = 0; state < kStates; ++state) {
    uint32_t c = code_of[state];
    e->next[e->first[c] + used[c]++] = (uint16_t)(kStates + state);
  }
}

static NOINLINE void build_ans_decoder(AnsDecoder* d, const Shares* s) {
  uint8_t code_of[kStates];
  uint16_t next[kMostCodes];
  spread(s, code_of);
  memcpy(next, s->share, sizeof next);
  for (uint32_t state = 0; state < kStates; ++state) {
    uint32_t c = code_of[state], x = next[c]++;
    uint32_t bits = kStateBits - log2_of(x);
    d->entries[state] = (AnsEntry){(uint16_t)((x << bits) - kStates), (uint8_t)c, (uint8_t)bits};
  }
}

// Encodes a code; returns the new state.
static inline uint32_t ans_put(BitWriter* w, const AnsEncoder* e, uint32_t state, uint32_t code) {
  uint32_t share = e->share[code], bits = 0;
  while (state >> bits >= 2 * share) ++bits;
  put_bits(w, state & ((1u << bits) - 1), bits);
  return e->next[e->first[code] + (state >> bits) - share];
}

// `*state` is less than kStates here.
static inline void ans_step(BackReader* r, const AnsDecoder* d, uint32_t* state) {
  const AnsEntry* entry = &d->entries[*state];
  *state = entry->base + get_back(r, entry->bits);
}

static void write_shares(BitWriter* w, const Shares* s) {
  for (uint32_t c = 0; c < s->codes; ++c) {
    put_bits(w, s->share[c] > 0, 1);
    if (s->share[c] == 0) continue;
    uint32_t log = log2_of(s->share[c]);
    put_bits(w, log, 4);
    put_bits(w, s->share[c] - (1u << log), log);
  }
}

static void read_shares(BitReader* r, Shares* s, uint32_t codes) {
  uint32_t sum = 0;
  memset(s, 0, sizeof *s);
  s->codes = codes;
  for (uint32_t c = 0; c < codes; ++c) {
    if (get_bits(r, 1) == 0) continue;
    uint32_t log = get_bits(r, 4);
    s->share[c] = (uint16_t)((1u << log) + get_bits(r, log));
    sum += s->share[c];
  }
  if (sum != kStates && sum != 0) fail("the shares of codes are wrong");
}

#endif  // UPTIER_EXAMPLES_LZ_ANS_H
