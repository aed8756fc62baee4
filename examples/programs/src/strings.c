// strings: searches a text for needles, sorts its words, formats a report and parses it back.
// Exercises byte loads with unpredictable exits, recursion, comparisons through a function pointer
// (qsort), and libc's number formatting and parsing.
// Size: thousands of words of text.
#include <string.h>

#include "program.h"

enum { kAlphabet = 256, kNeedles = 7, kLineSize = 96 };

// Writes `words` pronounceable words separated by spaces; returns the text, its size in `*size`.
static char* generate(uint32_t words, uint32_t* size) {
  static const char* const kSyllables[] = {"ka", "ro", "mi", "ten", "sa",  "lu", "vor", "e",
                                           "an", "di", "or", "pel", "qui", "zo", "ba",  "sh"};
  char* text = malloc((size_t)words * 13 + 1);
  if (text == NULL) exit(1);
  uint32_t random = 5550123u, at = 0;
  for (uint32_t i = 0; i < words; ++i) {
    uint32_t syllables = 1 + next_random(&random) % 4;
    for (; syllables > 0; --syllables) {
      const char* s = kSyllables[(next_random(&random) >> 7) % 16];
      while (*s != '\0') text[at++] = *s++;
    }
    text[at++] = ' ';
  }
  text[at] = '\0';
  *size = at;
  return text;
}

// --- searching ---------------------------------------------------------------------------------

// Counts occurrences by skipping on the last character of the window.
static NOINLINE uint32_t count_skipping(const char* text, uint32_t size, const char* needle) {
  uint32_t length = (uint32_t)strlen(needle), count = 0;
  uint32_t skip[kAlphabet];
  for (int i = 0; i < kAlphabet; ++i) skip[i] = length;
  for (uint32_t i = 0; i + 1 < length; ++i) skip[(uint8_t)needle[i]] = length - 1 - i;
  for (uint32_t at = 0; at + length <= size;) {
    uint32_t i = length;
    while (i > 0 && text[at + i - 1] == needle[i - 1]) --i;
    if (i == 0) ++count;
    at += skip[(uint8_t)text[at + length - 1]];
  }
  return count;
}

// Counts occurrences with a prefix table, looking at every character once.
static NOINLINE uint32_t count_scanning(const char* text, uint32_t size, const char* needle) {
  uint32_t length = (uint32_t)strlen(needle), count = 0, matched = 0;
  uint32_t border[32] = {0};
  for (uint32_t i = 1; i < length; ++i) {
    uint32_t k = border[i - 1];
    while (k > 0 && needle[i] != needle[k]) k = border[k - 1];
    border[i] = needle[i] == needle[k] ? k + 1 : 0;
  }
  for (uint32_t i = 0; i < size; ++i) {
    while (matched > 0 && text[i] != needle[matched]) matched = border[matched - 1];
    if (text[i] == needle[matched]) ++matched;
    if (matched == length) {
      ++count;
      matched = border[matched - 1];
    }
  }
  return count;
}

// --- sorting -----------------------------------------------------------------------------------

static void swap(const char** words, uint32_t i, uint32_t j) {
  const char* kept = words[i];
  words[i] = words[j];
  words[j] = kept;
}

// Sorts words that agree in their first `depth` characters, by three-way radix quicksort.
static void sort_words(const char** words, uint32_t count, uint32_t depth) {
  while (count > 1) {
    int pivot = words[count / 2][depth];
    uint32_t less = 0, i = 0, greater = count;
    while (i < greater) {
      int c = words[i][depth];
      if (c < pivot) {
        swap(words, less++, i++);
      } else if (c > pivot) {
        swap(words, i, --greater);
      } else {
        ++i;
      }
    }
    sort_words(words, less, depth);
    if (pivot != '\0') sort_words(words + less, greater - less, depth + 1);
    words += greater;
    count -= greater;
  }
}

typedef struct Group {
  const char* word;
  uint32_t count;
} Group;

static int by_count(const void* a, const void* b) {
  const Group* left = a;
  const Group* right = b;
  if (left->count != right->count) return left->count < right->count ? 1 : -1;
  return strcmp(left->word, right->word);
}

// Sorts the words and counts equal neighbours; returns the number of groups.
static uint32_t group(const char** words, uint32_t count, Group* groups) {
  uint32_t used = 0;
  sort_words(words, count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (used == 0 || strcmp(groups[used - 1].word, words[i]) != 0) {
      groups[used++] = (Group){words[i], 0};
    }
    ++groups[used - 1].count;
  }
  qsort(groups, used, sizeof *groups, by_count);
  return used;
}

// --- formatting --------------------------------------------------------------------------------

// Formats every eighth group, parses the line again and folds both; returns 0 on a difference.
static uint64_t report(const Group* groups, uint32_t used) {
  uint64_t checksum = 1;
  for (uint32_t i = 0; i < used; i += 8) {
    char line[kLineSize];
    int32_t value = (int32_t)(groups[i].count * 7919u) - (int32_t)i;
    snprintf(line, sizeof line, "%-16s|%8" PRId32 "|%06" PRIx32 "|%.3f", groups[i].word, value,
             groups[i].count, value / 8.0);
    for (const char* c = line; *c != '\0'; ++c) checksum = fold(checksum, (uint8_t)*c);
    const char* bar = strchr(line, '|');
    char* end = NULL;
    if (strtol(bar + 1, &end, 10) != value || *end != '|') return 0;
    if (strtoul(end + 1, &end, 16) != groups[i].count || *end != '|') return 0;
  }
  return checksum;
}

int main(int argc, char** argv) {
  static const char* const kNeedleTexts[kNeedles] = {"karo",  "anan",      "quitensa", "e e",
                                                     "zo ka", "vorvorvor", "x"};
  uint32_t thousands = size_argument(argc, argv, 30);
  if (thousands > 100000) thousands = 100000;
  uint32_t words = 1000 * thousands, size = 0, found = 0, scanned = 0;
  char* text = generate(words, &size);
  for (int i = 0; i < kNeedles; ++i) {
    found += count_skipping(text, size, kNeedleTexts[i]);
    scanned += count_scanning(text, size, kNeedleTexts[i]);
  }
  const char** starts = malloc(words * sizeof *starts);
  Group* groups = malloc(words * sizeof *groups);
  if (starts == NULL || groups == NULL) return 1;
  char* at = text;
  for (uint32_t i = 0; i < words; ++i) {
    starts[i] = at;
    while (*at != ' ') ++at;
    *at++ = '\0';
  }
  uint32_t used = group(starts, words, groups);
  uint64_t checksum = report(groups, used);
  printf("strings %" PRIu32 " bytes: needles %" PRIu32 " and %" PRIu32 ", %" PRIu32
         " distinct words, round trip %s\n",
         size, found, scanned, used, checksum != 0 ? "ok" : "FAILED");
  print_checksum("strings", fold(checksum, fold(found, used)));
  free(groups);
  free(starts);
  free(text);
  return checksum != 0 && found == scanned ? 0 : 1;
}
