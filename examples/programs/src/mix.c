// mix: a bit of everything small machines do: linked lists, small integer matrices, a branchy
// state machine over text, and a CRC that ties the results of one round to the input of the next.
// Exercises short loops, unpredictable branches, pointer chasing and a br_table.
// Size: number of rounds.
#include <string.h>

#include "program.h"

enum { kNodes = 200, kOrder = 12, kTextSize = 480 };

// --- CRC ---------------------------------------------------------------------------------------

static uint16_t crc_byte(uint16_t crc, uint8_t byte) {
  crc ^= (uint16_t)(byte << 8);
  for (int bit = 0; bit < 8; ++bit) {
    crc = (uint16_t)((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
  }
  return crc;
}

static uint16_t crc_word(uint16_t crc, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) crc = crc_byte(crc, (uint8_t)(word >> shift));
  return crc;
}

// --- lists -------------------------------------------------------------------------------------

typedef struct Node {
  struct Node* next;
  int16_t key;
  uint16_t rank;
} Node;

typedef int (*Compare)(const Node*, const Node*);

static int by_key(const Node* a, const Node* b) { return a->key - b->key; }
static int by_rank(const Node* a, const Node* b) { return (int)a->rank - (int)b->rank; }

static Node* reverse(Node* list) {
  Node* done = NULL;
  while (list != NULL) {
    Node* next = list->next;
    list->next = done;
    done = list;
    list = next;
  }
  return done;
}

static Node* merge(Node* a, Node* b, Compare compare) {
  Node head = {0};
  Node* tail = &head;
  while (a != NULL && b != NULL) {
    Node** smaller = compare(a, b) <= 0 ? &a : &b;
    tail->next = *smaller;
    tail = *smaller;
    *smaller = tail->next;
  }
  tail->next = a != NULL ? a : b;
  return head.next;
}

static Node* sort(Node* list, int length, Compare compare) {
  if (length < 2) {
    if (list != NULL) list->next = NULL;
    return list;
  }
  Node* middle = list;
  for (int i = 0; i < length / 2; ++i) middle = middle->next;
  Node* right = sort(middle, length - length / 2, compare);
  Node* left = sort(list, length / 2, compare);
  return merge(left, right, compare);
}

static const Node* find(const Node* list, int16_t key) {
  while (list != NULL && list->key != key) list = list->next;
  return list;
}

static NOINLINE uint16_t list_round(Node* nodes, uint16_t crc) {
  Node* list = NULL;
  uint32_t random = 0x1234u + crc;
  for (int i = 0; i < kNodes; ++i) {
    nodes[i].key = (int16_t)(next_random(&random) & 0x3ff);
    nodes[i].rank = (uint16_t)i;
    nodes[i].next = list;
    list = &nodes[i];
  }
  int found = 0;
  for (int16_t key = 0; key < 48; ++key) {
    const Node* node = find(list, (int16_t)(key * 21));
    if (node != NULL) found += node->rank;
    if ((key & 7) == 0) list = reverse(list);
  }
  list = sort(list, kNodes, by_key);
  for (const Node* node = list; node != NULL; node = node->next) {
    crc = (uint16_t)(crc * 31 + (uint16_t)node->key);
  }
  list = sort(list, kNodes, by_rank);
  return crc_word(crc, (uint32_t)found ^ (uint32_t)list->key);
}

// --- matrices ----------------------------------------------------------------------------------

static NOINLINE uint16_t matrix_round(int32_t (*c)[kOrder], uint16_t crc) {
  int16_t a[kOrder][kOrder], b[kOrder][kOrder];
  for (int i = 0; i < kOrder; ++i) {
    for (int j = 0; j < kOrder; ++j) {
      a[i][j] = (int16_t)((crc + i * 7 + j * 3) & 0xff);
      b[i][j] = (int16_t)((crc ^ (i * 5 + j * 11)) & 0x7f);
    }
  }
  int32_t over = 0;
  for (int i = 0; i < kOrder; ++i) {
    for (int j = 0; j < kOrder; ++j) {
      int32_t sum = 0;
      for (int k = 0; k < kOrder; ++k) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
      if (sum > 90000) over += sum >> 7;
    }
  }
  int32_t mixed = 0;
  for (int i = 0; i < kOrder; ++i) {
    for (int j = 0; j < kOrder; ++j) {
      int32_t low = c[i][j] & 0x3f, high = (c[j][i] >> 6) & 0x7f;
      mixed += low * high;
    }
  }
  return crc_word(crc_word(crc, (uint32_t)over), (uint32_t)mixed);
}

// --- state machine -----------------------------------------------------------------------------

typedef enum { kStart, kSign, kInteger, kPoint, kFraction, kExponent, kName, kInvalid } State;
enum { kStates = kInvalid + 1 };

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

static State step(State state, char c) {
  switch (state) {
    case kStart:
      if (is_digit(c)) return kInteger;
      if (c == '+' || c == '-') return kSign;
      if (c == '.') return kPoint;
      return is_letter(c) ? kName : kInvalid;
    case kSign:
      if (is_digit(c)) return kInteger;
      return c == '.' ? kPoint : kInvalid;
    case kInteger:
      if (is_digit(c)) return kInteger;
      if (c == '.') return kFraction;
      return c == 'e' ? kExponent : kInvalid;
    case kPoint: return is_digit(c) ? kFraction : kInvalid;
    case kFraction:
      if (is_digit(c)) return kFraction;
      return c == 'e' ? kExponent : kInvalid;
    case kExponent: return is_digit(c) || c == '-' ? kExponent : kInvalid;
    case kName: return is_digit(c) || is_letter(c) ? kName : kInvalid;
    case kInvalid: break;
  }
  return kInvalid;
}

static NOINLINE uint16_t state_round(char* text, uint16_t crc) {
  static const char* const kTokens[] = {"5012", "-17",   "3.25",  "+.5e-3", "6e12", "alpha",
                                        "x_1",  "-2.0e", "12ab3", "?",      ".",    "loop9"};
  int length = 0;
  uint32_t random = 0x9e37u ^ crc;
  while (length < kTextSize - 10) {
    const char* token = kTokens[next_random(&random) % 12];
    while (*token != '\0') text[length++] = *token++;
    text[length++] = ',';
  }
  text[crc % length] ^= 1;  // one damaged character per round
  uint32_t ends[kStates] = {0};
  State state = kStart;
  for (int i = 0; i < length; ++i) {
    if (text[i] == ',') {
      ++ends[state];
      state = kStart;
    } else {
      state = step(state, text[i]);
    }
  }
  for (int i = 0; i < kStates; ++i) crc = crc_word(crc, ends[i]);
  return crc;
}

int main(int argc, char** argv) {
  static Node nodes[kNodes];
  static int32_t product[kOrder][kOrder];
  static char text[kTextSize];
  uint32_t rounds = size_argument(argc, argv, 300);
  uint16_t list_crc = 0, matrix_crc = 0, state_crc = 0;
  for (uint32_t i = 0; i < rounds; ++i) {
    list_crc = list_round(nodes, (uint16_t)(list_crc ^ i));
    matrix_crc = matrix_round(product, (uint16_t)(matrix_crc + list_crc));
    state_crc = state_round(text, (uint16_t)(state_crc ^ matrix_crc));
  }
  printf("mix %" PRIu32 " rounds: list %04x matrix %04x state %04x\n", rounds, list_crc, matrix_crc,
         state_crc);
  print_checksum("mix", fold(fold(list_crc, matrix_crc), state_crc));
  return 0;
}
