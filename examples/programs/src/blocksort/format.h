// Blocks in the packed data, and whole texts.
//
// A block is: 1, its size, the row of the whole text, which bytes occur (16 bits for groups of 16,
// then 16 bits for each group that has one), the number of tables and groups, the choices of tables,
// the lengths of the codes, the symbols, and the checksum of its text. After the last one comes 0.
#ifndef UPTIER_EXAMPLES_BLOCKSORT_FORMAT_H
#define UPTIER_EXAMPLES_BLOCKSORT_FORMAT_H

#include "front.h"
#include "huffman.h"

typedef struct Packer {
  Sorter sorter;
  Tables tables;
  uint8_t block[kMostBlock];
  uint8_t rows[kMostBlock];
  uint8_t used[256];
  uint16_t symbols[kMostFront + 1];
} Packer;

typedef struct Unpacker {
  Tables tables;
  DecodeTable decode[kMostTables];
  FrontReader front;
  uint8_t used[256];
  uint8_t rows[kMostBlock];
  uint8_t block[kMostBlock];
  uint32_t next[kMostBlock + 1];
} Unpacker;

static void write_used(BitWriter* w, const uint8_t* used) {
  uint32_t groups = 0;
  for (uint32_t c = 0; c < 256; ++c) groups |= (uint32_t)used[c] << (c / 16);
  for (uint32_t g = 0; g < 16; ++g) put_bits(w, groups >> g & 1, 1);
  for (uint32_t c = 0; c < 256; ++c) {
    if (groups >> (c / 16) & 1) put_bits(w, used[c], 1);
  }
}

static void read_used(BitReader* r, uint8_t* used) {
  uint32_t groups = 0;
  for (uint32_t g = 0; g < 16; ++g) groups |= get_bits(r, 1) << g;
  for (uint32_t c = 0; c < 256; ++c) {
    used[c] = (groups >> (c / 16) & 1) ? (uint8_t)get_bits(r, 1) : 0;
  }
}

// A choice is written as its place in a list in which it moves to the front: so many ones, and a zero.
static void write_choices(BitWriter* w, const Tables* t) {
  uint8_t list[kMostTables] = {0, 1, 2, 3, 4, 5};
  for (uint32_t g = 0; g < t->groups; ++g) {
    uint32_t place = 0;
    while (list[place] != t->choice[g]) ++place;
    for (uint32_t k = 0; k < place; ++k) put_bits(w, 1, 1);
    put_bits(w, 0, 1);
    memmove(list + 1, list, place);
    list[0] = t->choice[g];
  }
}

static void read_choices(BitReader* r, Tables* t) {
  uint8_t list[kMostTables] = {0, 1, 2, 3, 4, 5};
  for (uint32_t g = 0; g < t->groups; ++g) {
    uint32_t place = 0;
    while (get_bits(r, 1)) {
      if (++place == t->count) fail("there is no such table");
    }
    uint8_t choice = list[place];
    memmove(list + 1, list, place);
    list[0] = t->choice[g] = choice;
  }
}

// Lengths are written as steps from the one before: 10 is one more, 11 one less, 0 ends.
static void write_lengths(BitWriter* w, const uint8_t* length, uint32_t symbols) {
  uint32_t now = length[0];
  put_bits(w, now, 5);
  for (uint32_t s = 0; s < symbols; ++s) {
    for (; now < length[s]; ++now) put_bits(w, 2, 2);
    for (; now > length[s]; --now) put_bits(w, 3, 2);
    put_bits(w, 0, 1);
  }
}

static void read_lengths(BitReader* r, uint8_t* length, uint32_t symbols) {
  uint32_t now = get_bits(r, 5);
  for (uint32_t s = 0; s < symbols; ++s) {
    while (get_bits(r, 1)) now += get_bits(r, 1) ? UINT32_MAX : 1;
    if (now < 1 || now > kMostLength) fail("a code has a wrong length");
    length[s] = (uint8_t)now;
  }
}

static NOINLINE void write_symbols(BitWriter* w, const Tables* t, const uint16_t* symbols,
                                   uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const CodeTable* table = &t->table[t->choice[i / kGroup]];
    put_bits(w, table->code[symbols[i]], table->length[symbols[i]]);
  }
}

static NOINLINE void read_symbols(BitReader* r, Unpacker* u) {
  for (uint32_t g = 0; g < u->tables.groups; ++g) {
    const DecodeTable* d = &u->decode[u->tables.choice[g]];
    for (uint32_t i = 0; i < kGroup; ++i) {
      if (!take_symbol(&u->front, get_symbol(r, d))) return;
    }
  }
  fail("a block has no end");
}

// Packs bytes from `text` as one block; returns how many.
static uint32_t pack_block(BitWriter* w, Packer* p, const uint8_t* text, uint32_t size) {
  uint32_t block_size, taken = write_runs(text, size, p->block, &block_size);
  uint32_t whole = transform(&p->sorter, p->block, block_size, p->rows), alphabet = 2;
  memset(p->used, 0, sizeof p->used);
  for (uint32_t i = 0; i < block_size; ++i) p->used[p->rows[i]] = 1;
  for (uint32_t c = 0; c < 256; ++c) alphabet += p->used[c];
  uint32_t count = move_to_front(p->rows, block_size, p->used, p->symbols);
  choose_tables(&p->tables, p->symbols, count, alphabet);
  put_bits(w, 1, 1);
  put_bits(w, block_size, 17);
  put_bits(w, whole, 17);
  write_used(w, p->used);
  put_bits(w, p->tables.count, 3);
  put_bits(w, p->tables.groups, 12);
  write_choices(w, &p->tables);
  for (uint32_t k = 0; k < p->tables.count; ++k) {
    write_lengths(w, p->tables.table[k].length, alphabet);
  }
  write_symbols(w, &p->tables, p->symbols, count);
  put_wide(w, crc_of(text, taken));
  return taken;
}

// Unpacks a block to `text` and returns its size.
static uint32_t unpack_block(BitReader* r, Unpacker* u, uint8_t* text, uint32_t room) {
  uint32_t block_size = get_bits(r, 17), whole = get_bits(r, 17), alphabet = 2;
  if (block_size > kMostBlock || whole > block_size) fail("a block has a wrong size");
  read_used(r, u->used);
  for (uint32_t c = 0; c < 256; ++c) alphabet += u->used[c];
  Tables* t = &u->tables;
  t->count = get_bits(r, 3);
  t->groups = get_bits(r, 12);
  if (t->count > kMostTables || t->groups > sizeof t->choice) fail("a block has a wrong size");
  read_choices(r, t);
  for (uint32_t k = 0; k < t->count; ++k) {
    read_lengths(r, t->table[k].length, alphabet);
    build_decode_table(&u->decode[k], t->table[k].length, alphabet);
  }
  u->front = (FrontReader){{{0}, 0}, u->rows, 0, block_size, 0, 0};
  start_list(&u->front.list, u->used);
  read_symbols(r, u);
  if (u->front.size != block_size) fail("a block has a wrong size");
  invert(u->rows, block_size, whole, u->next, u->block);
  uint32_t size = read_runs(u->block, block_size, text, room);
  if (get_wide(r) != crc_of(text, size)) fail("a block is not what it was");
  return size;
}

static uint32_t pack(Packer* p, const uint8_t* text, uint32_t size, uint8_t* packed,
                     uint32_t room) {
  BitWriter w = {packed, 0, room, 0, 0};
  for (uint32_t at = 0; at < size;) at += pack_block(&w, p, text + at, size - at);
  put_bits(&w, 0, 1);
  return finish_writer(&w);
}

static uint32_t unpack(Unpacker* u, const uint8_t* packed, uint32_t packed_size, uint8_t* text,
                       uint32_t room) {
  BitReader r = {packed, 0, packed_size, 0, 0};
  uint32_t at = 0;
  while (get_bits(&r, 1)) at += unpack_block(&r, u, text + at, room - at);
  return at;
}

#endif  // UPTIER_EXAMPLES_BLOCKSORT_FORMAT_H
