// compress: packs generated text with an LZ77 matcher (hash chains) and an adaptive binary range
// coder, unpacks it and compares.
// Exercises byte and half-word memory traffic, data-dependent branches, shifts and multiplications,
// and a hot tiny function (one coded bit) that is called from everywhere.
// Size: kilobytes of text.
#include <string.h>

#include "program.h"

enum {
  kWindow = 1 << 15,
  kHashBits = 13,
  kMaxChain = 24,
  kMinMatch = 4,
  kMaxMatch = kMinMatch + 255,
  kProbabilityBits = 11,
  kAdaptShift = 4,
};

// --- range coder -------------------------------------------------------------------------------

typedef uint16_t Probability;  // that the next bit is 0, in units of 2^-11

typedef struct Model {
  Probability is_match[4];
  Probability literal[8][256];  // by the top bits of the byte before
  Probability length[256];
  Probability distance_high[256];
  Probability distance_low[256];
} Model;

typedef struct Coder {
  Model model;
  uint8_t* bytes;
  uint32_t at;
  uint32_t range;
  uint32_t code;     // decoder
  uint64_t low;      // encoder
  uint32_t pending;  // bytes that a carry may still change
  uint8_t held;
} Coder;

static void start(Coder* coder, uint8_t* bytes) {
  memset(coder, 0, sizeof *coder);
  Probability* all = (Probability*)&coder->model;
  for (uint32_t i = 0; i < sizeof coder->model / sizeof *all; ++i) {
    all[i] = 1 << (kProbabilityBits - 1);
  }
  coder->bytes = bytes;
  coder->range = 0xffffffffu;
}

static void shift_out(Coder* coder) {
  if (coder->low < 0xff000000u || (coder->low >> 32) != 0) {
    uint8_t carry = (uint8_t)(coder->low >> 32);
    if (coder->pending > 0) coder->bytes[coder->at++] = (uint8_t)(coder->held + carry);
    for (; coder->pending > 1; --coder->pending)
      coder->bytes[coder->at++] = (uint8_t)(0xff + carry);
    coder->held = (uint8_t)(coder->low >> 24);
    coder->pending = 0;
  }
  ++coder->pending;
  coder->low = (uint32_t)coder->low << 8;
}

static NOINLINE void put_bit(Coder* coder, Probability* p, uint32_t bit) {
  uint32_t bound = (coder->range >> kProbabilityBits) * *p;
  if (bit == 0) {
    coder->range = bound;
    *p = (Probability)(*p + (((1 << kProbabilityBits) - *p) >> kAdaptShift));
  } else {
    coder->low += bound;
    coder->range -= bound;
    *p = (Probability)(*p - (*p >> kAdaptShift));
  }
  while (coder->range < (1u << 24)) {
    coder->range <<= 8;
    shift_out(coder);
  }
}

static NOINLINE uint32_t get_bit(Coder* coder, Probability* p) {
  uint32_t bound = (coder->range >> kProbabilityBits) * *p;
  uint32_t bit = coder->code >= bound;
  if (bit == 0) {
    coder->range = bound;
    *p = (Probability)(*p + (((1 << kProbabilityBits) - *p) >> kAdaptShift));
  } else {
    coder->code -= bound;
    coder->range -= bound;
    *p = (Probability)(*p - (*p >> kAdaptShift));
  }
  while (coder->range < (1u << 24)) {
    coder->range <<= 8;
    coder->code = (coder->code << 8) | coder->bytes[coder->at++];
  }
  return bit;
}

// A byte is eight bits, each with a probability that depends on the ones before it.
static void put_byte(Coder* coder, Probability* tree, uint32_t byte) {
  uint32_t node = 1;
  for (int shift = 7; shift >= 0; --shift) {
    uint32_t bit = (byte >> shift) & 1;
    put_bit(coder, &tree[node], bit);
    node = 2 * node + bit;
  }
}

static uint32_t get_byte(Coder* coder, Probability* tree) {
  uint32_t node = 1;
  while (node < 256) node = 2 * node + get_bit(coder, &tree[node]);
  return node & 0xff;
}

// --- matcher -----------------------------------------------------------------------------------

typedef struct Matcher {
  int32_t newest[1 << kHashBits];  // position, or -1
  int32_t older[kWindow];          // by position modulo the window
} Matcher;

static uint32_t hash_at(const uint8_t* text) {
  uint32_t word = text[0] | text[1] << 8 | text[2] << 16 | (uint32_t)text[3] << 24;
  return (word * 2654435761u) >> (32 - kHashBits);
}

static void remember(Matcher* matcher, const uint8_t* text, int32_t position) {
  uint32_t hash = hash_at(text + position);
  matcher->older[position % kWindow] = matcher->newest[hash];
  matcher->newest[hash] = position;
}

// Returns the length of the longest earlier match at `position` (0 if none is worth coding).
static NOINLINE int32_t longest_match(const Matcher* matcher, const uint8_t* text, int32_t position,
                                      int32_t end, int32_t* distance) {
  int32_t best = kMinMatch - 1;
  int32_t limit = end - position < kMaxMatch ? end - position : kMaxMatch;
  int32_t candidate = matcher->newest[hash_at(text + position)];
  for (int chain = 0; chain < kMaxChain && candidate >= 0; ++chain) {
    if (position - candidate >= kWindow || limit <= best) break;
    if (text[candidate + best] == text[position + best]) {
      int32_t length = 0;
      while (length < limit && text[candidate + length] == text[position + length]) ++length;
      if (length > best) {
        best = length;
        *distance = position - candidate;
      }
    }
    candidate = matcher->older[candidate % kWindow];
  }
  return best >= kMinMatch ? best : 0;
}

// --- packing -----------------------------------------------------------------------------------

static uint32_t pack(Coder* coder, Matcher* matcher, const uint8_t* text, int32_t size) {
  memset(matcher->newest, 0xff, sizeof matcher->newest);
  Model* model = &coder->model;
  uint32_t state = 0;
  for (int32_t i = 0; i < size;) {
    int32_t distance = 0, length = 0;
    if (i + kMinMatch <= size) length = longest_match(matcher, text, i, size, &distance);
    put_bit(coder, &model->is_match[state], length > 0);
    state = (2 * state + (length > 0)) & 3;
    if (length > 0) {
      put_byte(coder, model->length, (uint32_t)(length - kMinMatch));
      put_byte(coder, model->distance_high, (uint32_t)distance >> 8);
      put_byte(coder, model->distance_low, (uint32_t)distance & 0xff);
    } else {
      put_byte(coder, model->literal[i > 0 ? text[i - 1] >> 5 : 0], text[i]);
      length = 1;
    }
    for (; length > 0; --length, ++i) {
      if (i + kMinMatch <= size) remember(matcher, text, i);
    }
  }
  for (int i = 0; i < 6; ++i) shift_out(coder);
  return coder->at;
}

static void unpack(Coder* coder, uint8_t* text, int32_t size) {
  Model* model = &coder->model;
  uint32_t state = 0;
  for (int i = 0; i < 4; ++i) coder->code = (coder->code << 8) | coder->bytes[coder->at++];
  for (int32_t i = 0; i < size;) {
    uint32_t is_match = get_bit(coder, &model->is_match[state]);
    state = (2 * state + is_match) & 3;
    if (is_match == 0) {
      text[i] = (uint8_t)get_byte(coder, model->literal[i > 0 ? text[i - 1] >> 5 : 0]);
      ++i;
      continue;
    }
    int32_t length = kMinMatch + (int32_t)get_byte(coder, model->length);
    int32_t distance = (int32_t)(get_byte(coder, model->distance_high) << 8);
    distance |= (int32_t)get_byte(coder, model->distance_low);
    for (; length > 0 && i < size; --length, ++i) text[i] = text[i - distance];
  }
}

// Writes sentences over a small vocabulary: some words often, now and then a number.
static void generate(uint8_t* text, int32_t size) {
  static const char* const kWords[] = {"the ",     "counter ", "of ",      "a ",       "method ",
                                       "sampled ", "copy ",    "loop ",    "returns ", "when ",
                                       "code ",    "patched ", "profile ", "is ",      "merged ",
                                       "and ",     "hot, ",    "cold. "};
  uint32_t random = 777767777u;
  for (int32_t i = 0; i < size;) {
    uint32_t choice = next_random(&random);
    if (choice % 11 == 0) {
      text[i++] = (uint8_t)('0' + (choice >> 8) % 10);
      continue;
    }
    const char* word = kWords[(choice >> 4) % 18 * ((choice >> 12) % 18 + 1) / 18];
    while (*word != '\0' && i < size) text[i++] = (uint8_t)*word++;
  }
}

int main(int argc, char** argv) {
  static Coder encoder, decoder;
  static Matcher matcher;
  uint32_t kilobytes = size_argument(argc, argv, 192);
  if (kilobytes > 100000) kilobytes = 100000;
  int32_t size = (int32_t)kilobytes * 1024;
  uint8_t* text = malloc((size_t)size);
  uint8_t* copy = malloc((size_t)size);
  uint8_t* packed = malloc((size_t)size + (size_t)size / 8 + 64);
  if (text == NULL || copy == NULL || packed == NULL) return 1;
  generate(text, size);
  start(&encoder, packed);
  uint32_t packed_size = pack(&encoder, &matcher, text, size);
  start(&decoder, packed);
  unpack(&decoder, copy, size);
  int equal = memcmp(text, copy, (size_t)size) == 0;
  uint64_t checksum = 0;
  for (uint32_t i = 0; i < packed_size; ++i) checksum = fold(checksum, packed[i]);
  printf("compress %" PRId32 " bytes to %" PRIu32 ": round trip %s\n", size, packed_size,
         equal ? "ok" : "FAILED");
  print_checksum("compress", checksum);
  free(packed);
  free(copy);
  free(text);
  return equal ? 0 : 1;
}
