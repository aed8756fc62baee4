// The second format: the literals of a block in one Huffman code, then its sequences by ANS.
//
// A sequence is three codes, each with tables of its own: number of literals, length and place of the
// match. The places 1 to 3 are the last three distances, the others are distance + 3. The sequences
// are written last one first, and read from the end of the block.
#ifndef UPTIER_EXAMPLES_LZ_SEQUENCES_H
#define UPTIER_EXAMPLES_LZ_SEQUENCES_H

#include "ans.h"
#include "codes.h"
#include "huffman.h"
#include "match.h"

enum { kLiteralBytes = 256, kLiteralLimit = 12, kShortest = 4, kSequenceCodes = 36 };

// The last distances, the latest first.
typedef struct Recent {
  uint32_t distance[3];
} Recent;

static inline uint32_t place_of(Recent* r, uint32_t distance) {
  uint32_t place = distance + 3;
  for (uint32_t k = 0; k < 3; ++k) {
    if (r->distance[k] == distance) place = k + 1;
  }
  uint32_t from = place <= 3 ? place - 1 : 2;
  for (uint32_t k = from; k > 0; --k) r->distance[k] = r->distance[k - 1];
  r->distance[0] = distance;
  return place;
}

static inline uint32_t distance_of(Recent* r, uint32_t place) {
  uint32_t distance = place <= 3 ? r->distance[place - 1] : place - 3;
  uint32_t from = place <= 3 ? place - 1 : 2;
  for (uint32_t k = from; k > 0; --k) r->distance[k] = r->distance[k - 1];
  r->distance[0] = distance;
  return distance;
}

typedef struct Coded {
  uint32_t literals, length, place;
} Coded;

typedef struct Packer {
  Matcher matcher;
  Sequence sequences[kMostSequences + 1];
  Coded coded[kMostSequences + 1];
  uint8_t literals[kBlock];
  uint32_t counts[3][kSequenceCodes];
  uint32_t byte_counts[kLiteralBytes];
  HuffmanCode literal_code;
  Shares shares[3];
  AnsEncoder encoders[3];
  uint8_t bits[2 * kBlock];
} Packer;

// Takes the literals out of a block, and turns the matches into numbers. Returns how many literals
// there are.
static NOINLINE uint32_t take_apart(Packer* p, Recent* recent, const uint8_t* text,
                                    uint32_t count) {
  uint32_t literals = 0;
  memset(p->counts, 0, sizeof p->counts);
  memset(p->byte_counts, 0, sizeof p->byte_counts);
  for (uint32_t i = 0; i < count; ++i) {
    const Sequence* s = &p->sequences[i];
    memcpy(p->literals + literals, text, s->literals);
    literals += s->literals;
    text += s->literals + s->length;
    if (s->length == 0) continue;
    p->coded[i] = (Coded){s->literals, s->length - kShortest, place_of(recent, s->distance)};
    ++p->counts[0][code_of(p->coded[i].literals)];
    ++p->counts[1][code_of(p->coded[i].length)];
    ++p->counts[2][code_of(p->coded[i].place)];
  }
  for (uint32_t i = 0; i < literals; ++i) ++p->byte_counts[p->literals[i]];
  return literals;
}

static NOINLINE void write_literals(BitWriter* w, Packer* p, uint32_t literals) {
  build_code(&p->literal_code, p->byte_counts, kLiteralBytes, kLiteralLimit);
  int stored = cost_of(&p->literal_code, p->byte_counts) + 500 >= 8 * (uint64_t)literals;
  put_bits(w, literals, 17);
  put_bits(w, (uint32_t)stored, 1);
  if (stored) {
    for (uint32_t i = 0; i < literals; ++i) put_bits(w, p->literals[i], 8);
    return;
  }
  write_lengths(w, &p->literal_code);
  for (uint32_t i = 0; i < literals; ++i) put_symbol(w, &p->literal_code, p->literals[i]);
}

// Encodes the matches, the last one first. Returns the number of bits; `w` is not finished.
static NOINLINE uint32_t encode_sequences(BitWriter* w, const Packer* p, uint32_t count) {
  uint32_t states[3] = {kStates, kStates, kStates};
  for (uint32_t i = count; i-- > 0;) {
    const Coded* s = &p->coded[i];
    uint32_t literals = code_of(s->literals), length = code_of(s->length),
             place = code_of(s->place);
    states[2] = ans_put(w, &p->encoders[2], states[2], place);
    states[1] = ans_put(w, &p->encoders[1], states[1], length);
    states[0] = ans_put(w, &p->encoders[0], states[0], literals);
    put_further(w, s->literals, literals);
    put_further(w, s->length, length);
    put_further(w, s->place, place);
  }
  for (int k = 2; k >= 0; --k) put_bits(w, states[k] - kStates, kStateBits);
  return 8 * w->at + w->count;
}

static void write_sequences(BitWriter* w, Packer* p, uint32_t count) {
  BitWriter inner;
  put_bits(w, count, 16);
  if (count == 0) return;
  for (int k = 0; k < 3; ++k) {
    scale_counts(&p->shares[k], p->counts[k], kSequenceCodes);
    write_shares(w, &p->shares[k]);
    build_ans_encoder(&p->encoders[k], &p->shares[k]);
  }
  start_writer(&inner, p->bits, sizeof p->bits);
  uint32_t bits = encode_sequences(&inner, p, count), bytes = finish_writer(&inner);
  put_bits(w, bits, 24);
  if (w->count > 0) put_bits(w, 0, 8 - w->count);
  for (uint32_t i = 0; i < bytes; ++i) put_bits(w, p->bits[i], 8);
}

static uint32_t pack_sequences(const uint8_t* text, uint32_t size, const Effort* effort,
                               uint8_t* packed, uint32_t room) {
  static Packer packer;
  Packer* p = &packer;
  BitWriter w;
  Recent recent = {{1, 4, 8}};
  start_writer(&w, packed, room);
  start_matcher(&p->matcher, text, size, effort);
  for (uint32_t from = 0; from < size; from += kBlock) {
    uint32_t end = size - from < kBlock ? size : from + kBlock;
    uint32_t count = find_sequences(&p->matcher, from, end, p->sequences);
    write_literals(&w, p, take_apart(p, &recent, text + from, count));
    write_sequences(&w, p, count - 1);
  }
  put_bits(&w, crc_of(text, size), 32);
  return finish_writer(&w);
}

typedef struct Unpacker {
  uint8_t literals[kBlock];
  HuffmanCode code;
  HuffmanDecoder decoder;
  Shares shares;
  AnsDecoder decoders[3];
} Unpacker;

static NOINLINE uint32_t read_literals(BitReader* r, Unpacker* u) {
  uint32_t literals = get_bits(r, 17);
  if (literals > kBlock) fail("a block has too many literals");
  if (get_bits(r, 1)) {
    for (uint32_t i = 0; i < literals; ++i) u->literals[i] = (uint8_t)get_bits(r, 8);
    return literals;
  }
  read_lengths(r, &u->code, kLiteralBytes);
  build_decoder(&u->decoder, &u->code);
  for (uint32_t i = 0; i < literals; ++i) u->literals[i] = (uint8_t)get_symbol(r, &u->decoder);
  return literals;
}

static inline uint32_t get_further(BackReader* r, uint32_t code) {
  return first_of_code(code) + get_back(r, further_bits(code));
}

// Decodes matches and copies literals and matches to text[at ...]; returns where that ends.
static NOINLINE uint32_t decode_sequences(BackReader* r, const Unpacker* u, Recent* recent,
                                          uint32_t count, uint32_t* used, uint32_t literals,
                                          uint8_t* text, uint32_t at, uint32_t end) {
  uint32_t states[3];
  for (int k = 0; k < 3; ++k) states[k] = get_back(r, kStateBits);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t place = get_further(r, u->decoders[2].entries[states[2]].code);
    uint32_t length = get_further(r, u->decoders[1].entries[states[1]].code) + kShortest;
    uint32_t before = get_further(r, u->decoders[0].entries[states[0]].code);
    for (int k = 0; k < 3; ++k) ans_step(r, &u->decoders[k], &states[k]);
    if (place == 0 || before > literals - *used) fail("a sequence is wrong");
    uint32_t distance = distance_of(recent, place);
    if (before > end - at || length > end - at - before) fail("a block is too long");
    memcpy(text + at, u->literals + *used, before);
    *used += before;
    at += before;
    if (distance > at) fail("a match begins before the text");
    copy_match(text + at, distance, length);
    at += length;
  }
  if (states[0] != 0 || states[1] != 0 || states[2] != 0) fail("a block ends in a wrong state");
  return at;
}

static uint32_t read_sequences(BitReader* r, Unpacker* u, Recent* recent, uint32_t literals,
                               uint8_t* text, uint32_t at, uint32_t end) {
  uint32_t count = get_bits(r, 16), used = 0;
  if (count > 0) {
    BackReader back;
    for (int k = 0; k < 3; ++k) {
      read_shares(r, &u->shares, kSequenceCodes);
      build_ans_decoder(&u->decoders[k], &u->shares);
    }
    uint32_t bits = get_bits(r, 24), from = finish_reader(r), bytes = (bits + 7) / 8;
    if (bytes > r->end - from) fail("the packed data ends too early");
    start_back_reader(&back, r->bytes + from, bytes, bits);
    at = decode_sequences(&back, u, recent, count, &used, literals, text, at, end);
    *r = (BitReader){r->bytes, from + bytes, r->end, 0, 0};
  }
  if (literals - used != end - at) fail("a block has a wrong length");
  memcpy(text + at, u->literals + used, literals - used);
  return end;
}

static void unpack_sequences(const uint8_t* packed, uint32_t packed_size, uint8_t* text,
                             uint32_t size) {
  static Unpacker unpacker;
  BitReader r;
  Recent recent = {{1, 4, 8}};
  start_reader(&r, packed, packed_size);
  for (uint32_t from = 0; from < size; from += kBlock) {
    uint32_t end = size - from < kBlock ? size : from + kBlock;
    uint32_t literals = read_literals(&r, &unpacker);
    read_sequences(&r, &unpacker, &recent, literals, text, from, end);
  }
  uint32_t sum = get_bits(&r, 16);
  sum |= get_bits(&r, 16) << 16;
  finish_reader(&r);
  if (sum != crc_of(text, size)) fail("the text is not what it was");
}

#endif  // UPTIER_EXAMPLES_LZ_SEQUENCES_H
