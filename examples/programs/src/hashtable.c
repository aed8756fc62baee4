// hashtable: counts words in an open-addressing table from strings to integers that grows, loses
// some of its words again and reports the most frequent ones.
// Exercises byte loops (hashing, comparing), i64 multiplication, memory.copy, probing loops with
// rarely taken exits and a few large allocations.
// Size: thousands of words.
#include <string.h>

#include "program.h"

enum { kVocabulary = 30000, kWordSize = 24, kTop = 5 };

typedef struct Entry {
  char* word;  // NULL: free; owned
  uint32_t hash;
  int32_t count;
} Entry;

typedef struct Table {
  Entry* entries;
  uint32_t capacity;  // a power of two
  uint32_t used;
  uint64_t probes;
} Table;

static Entry* allocate_entries(uint32_t capacity) {
  Entry* entries = calloc(capacity, sizeof *entries);
  if (entries == NULL) exit(1);
  return entries;
}

static uint32_t hash_of(const char* word) {
  uint64_t hash = 1469598103u;
  for (; *word != '\0'; ++word) hash = (hash ^ (uint8_t)*word) * UINT64_C(1099511628211);
  return (uint32_t)(hash ^ (hash >> 32));
}

static NOINLINE Entry* find(Table* table, const char* word, uint32_t hash) {
  uint32_t mask = table->capacity - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    Entry* entry = &table->entries[i];
    ++table->probes;
    if (entry->word == NULL) return entry;
    if (entry->hash == hash && strcmp(entry->word, word) == 0) return entry;
  }
}

static void grow(Table* table) {
  Table larger = {allocate_entries(2 * table->capacity), 2 * table->capacity, table->used,
                  table->probes};
  uint32_t mask = larger.capacity - 1;
  for (uint32_t i = 0; i < table->capacity; ++i) {
    if (table->entries[i].word == NULL) continue;
    uint32_t at = table->entries[i].hash & mask;
    while (larger.entries[at].word != NULL) at = (at + 1) & mask;
    larger.entries[at] = table->entries[i];
  }
  free(table->entries);
  *table = larger;
}

static void add(Table* table, const char* word) {
  if (table->used * 4 >= table->capacity * 3) grow(table);
  uint32_t hash = hash_of(word);
  Entry* entry = find(table, word, hash);
  if (entry->word == NULL) {
    size_t size = strlen(word) + 1;
    entry->word = malloc(size);
    if (entry->word == NULL) exit(1);
    memcpy(entry->word, word, size);
    entry->hash = hash;
    ++table->used;
  }
  ++entry->count;
}

// Removes the word if present, and closes the gap by moving later entries of the cluster back.
static void drop(Table* table, const char* word) {
  uint32_t mask = table->capacity - 1;
  Entry* entry = find(table, word, hash_of(word));
  if (entry->word == NULL) return;
  free(entry->word);
  uint32_t gap = (uint32_t)(entry - table->entries);
  for (uint32_t i = (gap + 1) & mask; table->entries[i].word != NULL; i = (i + 1) & mask) {
    uint32_t home = table->entries[i].hash & mask;
    if (((i - home) & mask) < ((i - gap) & mask)) continue;
    table->entries[gap] = table->entries[i];
    gap = i;
  }
  table->entries[gap] = (Entry){0};
  --table->used;
}

// Writes word number `index` of the vocabulary: one to three syllables, and an s at times.
static void spell(uint32_t index, char* word) {
  static const char kConsonants[] = "bdfgklmnprstvz", kVowels[] = "aeiou";
  uint32_t rest = index;
  do {
    *word++ = kConsonants[rest % 14];
    rest /= 14;
    *word++ = kVowels[rest % 5];
    rest /= 5;
  } while (rest != 0);
  if (index % 3 == 0) *word++ = 's';
  *word = '\0';
}

// Draws a word number; small ones are far more frequent, about as in a natural text.
static uint32_t draw(uint32_t* random) {
  uint32_t range = kVocabulary >> (next_random(random) % 14);
  return next_random(random) % range;
}

static int more_frequent(const Entry* a, const Entry* b) {
  if (a->count != b->count) return a->count > b->count;
  return strcmp(a->word, b->word) < 0;
}

static void print_top(const Table* table) {
  const Entry* top[kTop + 1] = {0};
  for (uint32_t i = 0; i < table->capacity; ++i) {
    const Entry* entry = &table->entries[i];
    if (entry->word == NULL) continue;
    int at = kTop;
    for (; at > 0 && (top[at - 1] == NULL || more_frequent(entry, top[at - 1])); --at) {
      top[at] = top[at - 1];
    }
    top[at] = entry;
  }
  for (int i = 0; i < kTop && top[i] != NULL; ++i) {
    printf("hashtable %d: %s %" PRId32 "\n", i + 1, top[i]->word, top[i]->count);
  }
}

int main(int argc, char** argv) {
  uint64_t words = UINT64_C(1000) * size_argument(argc, argv, 250);
  Table table = {allocate_entries(64), 64, 0, 0};
  char word[kWordSize];
  uint32_t random = 20071u;
  for (uint64_t i = 0; i < words; ++i) {
    uint32_t index = draw(&random);
    spell(index, word);
    if (i % 16 == 15 && index > 40) {
      drop(&table, word);
    } else {
      add(&table, word);
    }
  }
  uint64_t checksum = table.probes;
  for (uint32_t i = 0; i < table.capacity; ++i) {
    const Entry* entry = &table.entries[i];
    if (entry->word != NULL) checksum += fold(entry->hash, (uint32_t)entry->count);
  }
  print_top(&table);
  printf("hashtable %" PRIu64 " words: %" PRIu32 " distinct, %" PRIu64 " probes\n", words,
         table.used, table.probes);
  print_checksum("hashtable", checksum);
  for (uint32_t i = 0; i < table.capacity; ++i) free(table.entries[i].word);
  free(table.entries);
  return 0;
}
