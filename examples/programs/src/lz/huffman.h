// Canonical Huffman codes: only the lengths are stored, codes of one length are in symbol order.
//
// Short codes are decoded by a table of their next kFastBits bits. Longer ones are found by their
// length: the codes of each length are consecutive numbers.
#ifndef UPTIER_EXAMPLES_LZ_HUFFMAN_H
#define UPTIER_EXAMPLES_LZ_HUFFMAN_H

#include "bits.h"

enum { kMostSymbols = 320, kMostLength = 15, kFastBits = 9 };

typedef struct HuffmanCode {
  uint32_t symbols;
  uint8_t length[kMostSymbols];  // 0 if the symbol does not occur
  uint16_t bits[kMostSymbols];   // reversed, since streams begin with the lowest bit
} HuffmanCode;

typedef struct HuffmanDecoder {
  uint16_t fast[1 << kFastBits];  // symbol * 16 + length; 0 for codes that are longer
  uint16_t count[kMostLength + 1];
  uint16_t ordered[kMostSymbols];  // symbols by length, then by number
} HuffmanDecoder;

typedef struct TreeNode {
  uint32_t weight;
  int16_t parent;
} TreeNode;

// Sorts the symbols that occur by how often they do; returns their number.
static uint32_t sort_symbols(const uint32_t* counts, uint32_t symbols, uint16_t* order) {
  uint32_t n = 0;
  for (uint32_t s = 0; s < symbols; ++s) {
    if (counts[s] > 0) order[n++] = (uint16_t)s;
  }
  for (uint32_t gap = 121; gap > 0; gap /= 3) {
    for (uint32_t i = gap; i < n; ++i) {
      uint16_t s = order[i];
      uint32_t k = i;
      for (; k >= gap; k -= gap) {
        uint16_t other = order[k - gap];
        if (counts[other] < counts[s] || (counts[other] == counts[s] && other < s)) break;
        order[k] = other;
      }
      order[k] = s;
    }
  }
  return n;
}

// Counts how many leaves of a Huffman tree have each depth. `order` has the n leaves by weight.
static void count_depths(const uint32_t* counts, const uint16_t* order, uint32_t n,
                         uint32_t* depths) {
  static TreeNode nodes[2 * kMostSymbols];
  static uint16_t depth[2 * kMostSymbols];
  uint32_t leaf = 0, inner = n, next = n;
  for (uint32_t i = 0; i < n; ++i) nodes[i] = (TreeNode){counts[order[i]], -1};
  while (next < 2 * n - 1) {
    uint32_t weight = 0;
    for (int k = 0; k < 2; ++k) {
      uint32_t least = leaf < n && (inner == next || nodes[leaf].weight <= nodes[inner].weight)
                           ? leaf++
                           : inner++;
      weight += nodes[least].weight;
      nodes[least].parent = (int16_t)next;
    }
    nodes[next++] = (TreeNode){weight, -1};
  }
  memset(depths, 0, 64 * sizeof *depths);
  depth[next - 1] = 0;
  for (uint32_t i = next - 1; i-- > 0;) {
    depth[i] = (uint16_t)(depth[nodes[i].parent] + 1);
    if (i < n) ++depths[depth[i] < 63 ? depth[i] : 63];
  }
}

// Makes depths above the limit smaller, and others larger until the code is complete again.
static void limit_depths(uint32_t* depths, uint32_t limit) {
  uint32_t room = 0;  // that the codes take, in codes of the greatest length
  for (uint32_t d = limit + 1; d < 64; ++d) {
    depths[limit] += depths[d];
    depths[d] = 0;
  }
  for (uint32_t d = 1; d <= limit; ++d) room += depths[d] << (limit - d);
  while (room > 1u << limit) {
    uint32_t d = limit - 1;
    while (depths[d] == 0) --d;
    --depths[d];
    depths[d + 1] += 2;
    --depths[limit];
    --room;
  }
}

static uint32_t reverse_bits(uint32_t bits, uint32_t count) {
  uint32_t reversed = 0;
  for (uint32_t k = 0; k < count; ++k) reversed |= (bits >> k & 1) << (count - 1 - k);
  return reversed;
}

// Gives each symbol its bits, by the lengths.
static void assign_codes(HuffmanCode* c) {
  uint32_t next = 0;
  for (uint32_t length = 1; length <= kMostLength; ++length) {
    for (uint32_t s = 0; s < c->symbols; ++s) {
      if (c->length[s] == length) c->bits[s] = (uint16_t)reverse_bits(next++, length);
    }
    next <<= 1;
  }
}

static NOINLINE void build_code(HuffmanCode* c, const uint32_t* counts, uint32_t symbols,
                                uint32_t limit) {
  uint16_t order[kMostSymbols];
  uint32_t depths[64];
  uint32_t n = sort_symbols(counts, symbols, order);
  memset(c->length, 0, sizeof c->length);
  c->symbols = symbols;
  if (n == 1) c->length[order[0]] = 1;
  if (n > 1) {
    count_depths(counts, order, n, depths);
    limit_depths(depths, limit);
    uint32_t i = n;
    for (uint32_t d = 1; d <= limit; ++d) {
      for (uint32_t k = 0; k < depths[d]; ++k) c->length[order[--i]] = (uint8_t)d;
    }
  }
  assign_codes(c);
}

static inline void put_symbol(BitWriter* w, const HuffmanCode* c, uint32_t symbol) {
  put_bits(w, c->bits[symbol], c->length[symbol]);
}

// Returns how many bits the symbols of a histogram take.
static uint64_t cost_of(const HuffmanCode* c, const uint32_t* counts) {
  uint64_t bits = 0;
  for (uint32_t s = 0; s < c->symbols; ++s) bits += (uint64_t)counts[s] * c->length[s];
  return bits;
}

// Lengths are written as nibbles; 0 is followed by the number of further zeros, in groups of 3 bits.
static void write_lengths(BitWriter* w, const HuffmanCode* c) {
  for (uint32_t s = 0; s < c->symbols;) {
    put_bits(w, c->length[s], 4);
    if (c->length[s++] != 0) continue;
    uint32_t zeros = 0;
    for (; s < c->symbols && c->length[s] == 0; ++s) ++zeros;
    for (; zeros >= 7; zeros -= 7) put_bits(w, 7, 3);
    put_bits(w, zeros, 3);
  }
}

static void read_lengths(BitReader* r, HuffmanCode* c, uint32_t symbols) {
  c->symbols = symbols;
  for (uint32_t s = 0; s < symbols;) {
    c->length[s] = (uint8_t)get_bits(r, 4);
    if (c->length[s++] != 0) continue;
    uint32_t more = 7;
    while (more == 7) {
      more = get_bits(r, 3);
      for (uint32_t k = 0; k < more && s < symbols; ++k) c->length[s++] = 0;
    }
  }
}

static NOINLINE void build_decoder(HuffmanDecoder* d, const HuffmanCode* c) {
  uint32_t n = 0, next = 0;
  memset(d, 0, sizeof *d);
  for (uint32_t length = 1; length <= kMostLength; ++length) {
    for (uint32_t s = 0; s < c->symbols; ++s) {
      if (c->length[s] != length) continue;
      d->ordered[n++] = (uint16_t)s;
      ++d->count[length];
      uint32_t bits = reverse_bits(next++, length);
      for (; length <= kFastBits && bits < 1u << kFastBits; bits += 1u << length) {
        d->fast[bits] = (uint16_t)(s << 4 | length);
      }
    }
    next <<= 1;
    if (next > 1u << (length + 1)) fail("a code is not one");
  }
}

static NOINLINE uint32_t get_long_symbol(BitReader* r, const HuffmanDecoder* d) {
  uint32_t code = 0, first = 0, index = 0;
  for (uint32_t length = 1; length <= kMostLength; ++length) {
    code |= (uint32_t)(r->held >> (length - 1)) & 1;
    uint32_t count = d->count[length];
    if (code < first + count) {
      drop_bits(r, length);
      return d->ordered[index + (code - first)];
    }
    index += count;
    first = (first + count) << 1;
    code <<= 1;
  }
  fail("the packed data has a code that is none");
  return 0;
}

static inline uint32_t get_symbol(BitReader* r, const HuffmanDecoder* d) {
  refill(r);
  uint32_t entry = d->fast[peek_bits(r, kFastBits)];
  if (entry == 0) return get_long_symbol(r, d);
  drop_bits(r, entry & 15);
  return entry >> 4;
}

#endif  // UPTIER_EXAMPLES_LZ_HUFFMAN_H
