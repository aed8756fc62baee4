// Matches of a text with its own past: chains of places with the same hash, and lazy matching.
#ifndef UPTIER_EXAMPLES_LZ_MATCH_H
#define UPTIER_EXAMPLES_LZ_MATCH_H

#include "bits.h"

enum { kWindowBits = 16, kWindow = 1 << kWindowBits, kHashBits = 15, kMostMatch = 258 };
enum { kBlock = 1 << 16, kMostSequences = kBlock / 3 + 1 };

// The effort of a level.
typedef struct Effort {
  uint32_t least_match;  // 3 or 4
  uint32_t most_steps;   // along a chain
  uint32_t good_match;   // from this length on, a better one is hardly looked for
  uint32_t nice_match;   // the search ends with such a match
  uint32_t lazy;         // how many places further a match may begin for being longer
} Effort;

// Literals, and the match after them. The last sequence of a block has none: its length is 0.
typedef struct Sequence {
  uint32_t literals, length, distance;
} Sequence;

typedef struct Matcher {
  const uint8_t* text;
  uint32_t size;
  Effort effort;
  uint32_t next_to_insert;
  int32_t head[1 << kHashBits];  // the last place with this hash, -1 for none
  int32_t chain[kWindow];        // the place before it, by place modulo kWindow
} Matcher;

typedef struct Match {
  uint32_t length, distance;
} Match;

static void start_matcher(Matcher* m, const uint8_t* text, uint32_t size, const Effort* effort) {
  m->text = text;
  m->size = size;
  m->effort = *effort;
  m->next_to_insert = 0;
  memset(m->head, 0xff, sizeof m->head);
}

static inline uint32_t hash_at(const Matcher* m, uint32_t at) {
  uint32_t bytes = load32(m->text + at);
  if (m->effort.least_match == 3) bytes <<= 8;
  return bytes * 2654435761u >> (32 - kHashBits);
}

// Enters all places below `to` into the chains.
static inline void insert_up_to(Matcher* m, uint32_t to) {
  if (to + 4 > m->size) to = m->size < 4 ? 0 : m->size - 4;
  for (; m->next_to_insert < to; ++m->next_to_insert) {
    uint32_t hash = hash_at(m, m->next_to_insert);
    m->chain[m->next_to_insert & (kWindow - 1)] = m->head[hash];
    m->head[hash] = (int32_t)m->next_to_insert;
  }
}

// Returns how many bytes are equal, up to `most`.
static inline uint32_t common_length(const uint8_t* a, const uint8_t* b, uint32_t most) {
  uint32_t n = 0;
  while (n + 8 <= most) {
    uint64_t difference = load64(a + n) ^ load64(b + n);
    if (difference != 0) return n + (uint32_t)__builtin_ctzll(difference) / 8;
    n += 8;
  }
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

// Returns the longest match at a place that is longer than `least`; length 0 if there is none.
static NOINLINE Match find_match(Matcher* m, uint32_t at, uint32_t end, uint32_t least) {
  Match best = {0, 0};
  uint32_t most = end - at < kMostMatch ? end - at : kMostMatch;
  insert_up_to(m, at);
  if (at + 8 > m->size || most <= least || most < m->effort.least_match) return best;
  uint32_t steps = least >= m->effort.good_match ? m->effort.most_steps / 4 : m->effort.most_steps;
  uint32_t length = least < m->effort.least_match - 1 ? m->effort.least_match - 1 : least;
  const uint8_t* text = m->text;
  int32_t other = m->head[hash_at(m, at)];
  while (other >= 0 && at - (uint32_t)other < kWindow && steps-- > 0) {
    // A longer match has the same byte where the best one ends.
    if (text[(uint32_t)other + length] == text[at + length]) {
      uint32_t common = common_length(text + other, text + at, most);
      if (common > length) {
        length = common;
        best = (Match){common, at - (uint32_t)other};
        if (common >= m->effort.nice_match || common == most) break;
      }
    }
    int32_t next = m->chain[(uint32_t)other & (kWindow - 1)];
    if (next >= other) break;  // its place was used again
    other = next;
  }
  return best;
}

// A short match far away costs more bits than its bytes.
static inline int is_worth_it(const Match* match) {
  return match->length > 3 || (match->length == 3 && match->distance < 4096);
}

// Divides [from, end) into sequences; returns their number.
static NOINLINE uint32_t find_sequences(Matcher* m, uint32_t from, uint32_t end, Sequence* out) {
  uint32_t count = 0, literals = 0, at = from;
  while (at < end) {
    Match match = find_match(m, at, end, 0);
    if (!is_worth_it(&match)) {
      ++literals;
      ++at;
      continue;
    }
    for (uint32_t tries = 0; tries < m->effort.lazy && match.length < m->effort.nice_match;) {
      Match later = find_match(m, at + tries + 1, end, match.length + tries);
      ++tries;
      if (later.length > match.length + tries) {
        match = later;
        at += tries;
        literals += tries;
        tries = 0;
      }
    }
    out[count++] = (Sequence){literals, match.length, match.distance};
    literals = 0;
    at += match.length;
  }
  out[count++] = (Sequence){literals, 0, 0};
  return count;
}

// Copies a match; the bytes may overlap.
static inline void copy_match(uint8_t* to, uint32_t distance, uint32_t length) {
  const uint8_t* from = to - distance;
  if (distance >= 8) {
    for (; length >= 8; length -= 8, to += 8, from += 8) memcpy(to, from, 8);
  }
  for (; length > 0; --length) *to++ = *from++;
}

#endif  // UPTIER_EXAMPLES_LZ_MATCH_H
