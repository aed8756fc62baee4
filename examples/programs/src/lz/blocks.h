// The first format: literals and lengths in one Huffman code, distances in another.
//
// A block has a bit that says whether it is stored as it is. Otherwise it has the lengths of both
// codes, then literals and matches in the order of the text, then kEndOfBlock.
#ifndef UPTIER_EXAMPLES_LZ_BLOCKS_H
#define UPTIER_EXAMPLES_LZ_BLOCKS_H

#include "codes.h"
#include "huffman.h"
#include "match.h"

enum { kEndOfBlock = 256, kFirstLength = 257, kLengthCodes = 16, kDistanceCodes = 32 };
enum { kBlockSymbols = kFirstLength + kLengthCodes, kLeastLength = 3 };

typedef struct BlockCodes {
  uint32_t symbol_counts[kBlockSymbols];
  uint32_t distance_counts[kDistanceCodes];
  HuffmanCode symbols, distances;
} BlockCodes;

static void count_block(BlockCodes* c, const uint8_t* text, const Sequence* s, uint32_t count) {
  memset(c->symbol_counts, 0, sizeof c->symbol_counts);
  memset(c->distance_counts, 0, sizeof c->distance_counts);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t k = 0; k < s[i].literals; ++k) ++c->symbol_counts[*text++];
    if (s[i].length == 0) continue;
    ++c->symbol_counts[kFirstLength + code_of(s[i].length - kLeastLength)];
    ++c->distance_counts[code_of(s[i].distance - 1)];
    text += s[i].length;
  }
  c->symbol_counts[kEndOfBlock] = 1;
}

// Returns about how many bits the block takes when it is coded.
static uint64_t coded_bits(const BlockCodes* c) {
  uint64_t bits =
      cost_of(&c->symbols, c->symbol_counts) + cost_of(&c->distances, c->distance_counts);
  for (uint32_t k = 0; k < kLengthCodes; ++k) {
    bits += (uint64_t)c->symbol_counts[kFirstLength + k] * further_bits(k);
  }
  for (uint32_t k = 0; k < kDistanceCodes; ++k) {
    bits += (uint64_t)c->distance_counts[k] * further_bits(k);
  }
  return bits + 800;
}

static NOINLINE void write_coded(BitWriter* w, const BlockCodes* c, const uint8_t* text,
                                 const Sequence* s, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t k = 0; k < s[i].literals; ++k) put_symbol(w, &c->symbols, *text++);
    if (s[i].length == 0) continue;
    uint32_t length = s[i].length - kLeastLength, distance = s[i].distance - 1;
    uint32_t length_code = code_of(length), distance_code = code_of(distance);
    put_symbol(w, &c->symbols, kFirstLength + length_code);
    put_further(w, length, length_code);
    put_symbol(w, &c->distances, distance_code);
    put_further(w, distance, distance_code);
    text += s[i].length;
  }
  put_symbol(w, &c->symbols, kEndOfBlock);
}

static uint32_t pack_blocks(const uint8_t* text, uint32_t size, const Effort* effort,
                            uint8_t* packed, uint32_t room) {
  static Matcher matcher;
  static Sequence sequences[kMostSequences + 1];
  static BlockCodes codes;
  BitWriter w;
  start_writer(&w, packed, room);
  start_matcher(&matcher, text, size, effort);
  for (uint32_t from = 0; from < size; from += kBlock) {
    uint32_t end = size - from < kBlock ? size : from + kBlock;
    uint32_t count = find_sequences(&matcher, from, end, sequences);
    count_block(&codes, text + from, sequences, count);
    build_code(&codes.symbols, codes.symbol_counts, kBlockSymbols, kMostLength);
    build_code(&codes.distances, codes.distance_counts, kDistanceCodes, kMostLength);
    int stored = coded_bits(&codes) >= 8 * (uint64_t)(end - from);
    put_bits(&w, (uint32_t)stored, 1);
    if (stored) {
      for (uint32_t i = from; i < end; ++i) put_bits(&w, text[i], 8);
    } else {
      write_lengths(&w, &codes.symbols);
      write_lengths(&w, &codes.distances);
      write_coded(&w, &codes, text + from, sequences, count);
    }
  }
  put_bits(&w, adler_of(text, size), 32);
  return finish_writer(&w);
}

// Decodes a block to text[at ...] and returns where it ends.
static NOINLINE uint32_t read_coded(BitReader* r, const HuffmanDecoder* symbols,
                                    const HuffmanDecoder* distances, uint8_t* text, uint32_t at,
                                    uint32_t end) {
  for (;;) {
    uint32_t symbol = get_symbol(r, symbols);
    if (symbol < kEndOfBlock) {
      if (at == end) fail("the text is longer than it should be");
      text[at++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == kEndOfBlock) return at;
    uint32_t code = symbol - kFirstLength;
    uint32_t length = kLeastLength + first_of_code(code) + get_bits(r, further_bits(code));
    code = get_symbol(r, distances);
    uint32_t distance = 1 + first_of_code(code) + get_bits(r, further_bits(code));
    if (distance > at || length > end - at) fail("a match lies outside of the text");
    copy_match(text + at, distance, length);
    at += length;
  }
}

static void unpack_blocks(const uint8_t* packed, uint32_t packed_size, uint8_t* text,
                          uint32_t size) {
  static HuffmanCode code;
  static HuffmanDecoder symbols, distances;
  BitReader r;
  start_reader(&r, packed, packed_size);
  for (uint32_t from = 0; from < size; from += kBlock) {
    uint32_t end = size - from < kBlock ? size : from + kBlock;
    if (get_bits(&r, 1)) {
      for (uint32_t i = from; i < end; ++i) text[i] = (uint8_t)get_bits(&r, 8);
      continue;
    }
    read_lengths(&r, &code, kBlockSymbols);
    assign_codes(&code);
    build_decoder(&symbols, &code);
    read_lengths(&r, &code, kDistanceCodes);
    build_decoder(&distances, &code);
    if (read_coded(&r, &symbols, &distances, text, from, end) != end) fail("a block is too short");
  }
  uint32_t sum = get_bits(&r, 16);
  sum |= get_bits(&r, 16) << 16;
  finish_reader(&r);
  if (sum != adler_of(text, size)) fail("the text is not what it was");
}

#endif  // UPTIER_EXAMPLES_LZ_BLOCKS_H
