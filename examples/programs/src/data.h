// Data to be packed: kinds that compress by different means. The programs that pack data share it.
#ifndef UPTIER_EXAMPLES_DATA_H
#define UPTIER_EXAMPLES_DATA_H

#include <string.h>

#include "program.h"

typedef struct Sink {
  uint8_t* bytes;
  uint32_t at, size;
  uint32_t random;
} Sink;

static void put_byte(Sink* s, uint32_t byte) {
  if (s->at < s->size) s->bytes[s->at++] = (uint8_t)byte;
}
static void put_text(Sink* s, const char* text) {
  while (*text != '\0') put_byte(s, (uint8_t)*text++);
}
static void put_decimal(Sink* s, uint32_t number) {
  char digits[12];
  uint32_t n = 0;
  do {
    digits[n++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (n > 0) put_byte(s, (uint8_t)digits[--n]);
}
static uint32_t below(Sink* s, uint32_t limit) { return (next_random(&s->random) >> 8) % limit; }

// Small numbers are more likely.
static uint32_t skewed(Sink* s, uint32_t limit) { return below(s, below(s, limit) + 1); }

// Words of syllables; each word has a few that may follow it.
static void put_prose(Sink* s) {
  static const char* const kSyllables[] = {"ba", "con", "der", "el",  "for", "ga",  "hin", "is",
                                           "jo", "ker", "la",  "men", "no",  "or",  "per", "qui",
                                           "ra", "sto", "ti",  "un",  "ver", "wil", "xe",  "yon"};
  uint32_t word = 0, in_sentence = 0;
  while (s->at < s->size) {
    word = below(s, 4) > 0 ? (word * 37 + skewed(s, 6) * 101) % 701 : skewed(s, 701);
    uint32_t syllables = 1 + word % 3, seed = word * 2654435761u;
    for (uint32_t k = 0; k < syllables; ++k, seed = seed * 69069u + 1) {
      const char* text = kSyllables[(seed >> 20) % 24];
      if (in_sentence == 0 && k == 0) { put_byte(s, (uint8_t)*text++ - 'a' + 'A'); }
      put_text(s, text);
    }
    ++in_sentence;
    if (in_sentence > 6 && below(s, 5) == 0) {
      put_text(s, below(s, 8) == 0 ? ".\n\n" : ". ");
      in_sentence = 0;
    } else {
      put_text(s, below(s, 12) == 0 ? ", " : " ");
    }
  }
}

// Lines of a server's log.
static void put_log(Sink* s) {
  static const char* const kLevels[] = {"info", "info", "info", "warning", "debug", "error"};
  static const char* const kEvents[] = {"request served", "cache miss", "connection closed",
                                        "retry", "queue is full"};
  uint32_t time = 1000000;
  while (s->at < s->size) {
    time += skewed(s, 900);
    put_text(s, "{\"time\":");
    put_decimal(s, time);
    put_text(s, ",\"level\":\"");
    put_text(s, kLevels[skewed(s, 6)]);
    put_text(s, "\",\"event\":\"");
    put_text(s, kEvents[skewed(s, 5)]);
    put_text(s, "\",\"client\":\"10.0.");
    put_decimal(s, skewed(s, 4));
    put_byte(s, '.');
    put_decimal(s, skewed(s, 250));
    put_text(s, "\",\"bytes\":");
    put_decimal(s, skewed(s, 100000));
    put_text(s, "}\n");
  }
}

// Records of fixed size: a number that grows, a kind, coordinates that drift, flags.
static void put_records(Sink* s) {
  uint32_t number = 77000, x = 1 << 20, y = 1 << 21;
  while (s->at < s->size) {
    number += 1 + skewed(s, 3);
    x += below(s, 65) - 32;
    y += below(s, 17) - 8;
    uint32_t kind = skewed(s, 9);
    kind |= 0x4000u << skewed(s, 3);
    uint32_t fields[] = {number, kind, x, y};
    for (uint32_t f = 0; f < 4; ++f) {
      for (uint32_t k = 0; k < 4; ++k) put_byte(s, fields[f] >> (8 * k) & 255);
    }
    put_byte(s, below(s, 30) == 0 ? 255 : 0);
    for (uint32_t k = 0; k < 3; ++k) put_byte(s, 0);
  }
}

// Code of a made-up machine: opcodes, registers, addresses near each other.
static void put_code(Sink* s) {
  uint32_t target = 0x8000;
  while (s->at < s->size) {
    uint32_t opcode = skewed(s, 48);
    put_byte(s, 0x40 + opcode);
    if (opcode % 3 != 0) {
      uint32_t to = skewed(s, 8);
      put_byte(s, to << 3 | skewed(s, 8));
    }
    if (opcode % 7 == 0) {
      target += skewed(s, 512) - 60;
      put_byte(s, target & 255);
      put_byte(s, target >> 8 & 255);
      put_byte(s, 0);
      put_byte(s, 0);
    }
    if (opcode == 1 && s->at > 600 && s->at + 40 < s->size) {  // a sequence that was used before
      uint32_t from = s->at - 40 - below(s, 500);
      for (uint32_t k = 0; k < 8 + below(s, 24); ++k) put_byte(s, s->bytes[from + k]);
    }
  }
}

// A picture of a slope with noise, and bytes without any order.
static void put_picture(Sink* s) {
  for (uint32_t row = 0; s->at < s->size; ++row) {
    for (uint32_t column = 0; column < 256; ++column) {
      uint32_t shade = (row * 3 + column * 2) / 5 + (column % 64 == 0 ? 90 : 0);
      put_byte(s, (shade + (below(s, 4) == 0)) & 255);
    }
    if (row % 16 == 15) {
      for (uint32_t k = 0; k < 512; ++k) put_byte(s, below(s, 256));
    }
  }
}

typedef struct DataKind {
  const char* name;
  void (*put)(Sink*);
} DataKind;

static const DataKind kKinds[] = {{"prose", put_prose},
                                  {"log", put_log},
                                  {"records", put_records},
                                  {"code", put_code},
                                  {"picture", put_picture}};
enum { kKindCount = sizeof kKinds / sizeof kKinds[0] };

#endif  // UPTIER_EXAMPLES_DATA_H
