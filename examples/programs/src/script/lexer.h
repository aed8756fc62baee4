// Words of a script's text.
#ifndef UPTIER_EXAMPLES_SCRIPT_LEXER_H
#define UPTIER_EXAMPLES_SCRIPT_LEXER_H

#include <ctype.h>

#include "value.h"

enum { kNameSize = 16 };
typedef enum { kEnd, kName, kNumber, kQuoted, kSign } WordKind;

typedef struct Word {
  WordKind kind;
  const char* begin;
  uint32_t size;
} Word;

typedef struct Lexer {
  const char* at;
  uint32_t line;
  Word word;  // the current one
} Lexer;

static NOINLINE void fail_at(const Lexer* l, const char* what) {
  fprintf(stderr, "script: line %u, at '%.*s': %s\n", (unsigned)l->line, (int)l->word.size,
          l->word.begin, what);
  exit(1);
}

static void skip_space(Lexer* l) {
  for (;; ++l->at) {
    if (*l->at == '#') l->at += strcspn(l->at, "\n");
    if (*l->at == '\n') ++l->line;
    if (*l->at == '\0' || !isspace((unsigned char)*l->at)) return;
  }
}

static uint32_t size_of_sign(const char* at) {
  static const char* const kLong[] = {">>>", "==", "!=", "<=", ">=", "&&",
                                      "||",  "<<", ">>", "+=", "++", "--"};
  for (size_t i = 0; i < sizeof kLong / sizeof kLong[0]; ++i) {
    if (strncmp(at, kLong[i], strlen(kLong[i])) == 0) return (uint32_t)strlen(kLong[i]);
  }
  return 1;
}

static int is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void next_word(Lexer* l) {
  skip_space(l);
  const char* from = l->at;
  const char* to = from;
  WordKind kind = kSign;
  if (*from == '\0') {
    kind = kEnd;
  } else if (isdigit((unsigned char)*from)) {
    kind = kNumber;
    while (is_letter(*to) || *to == '.') ++to;
  } else if (is_letter(*from)) {
    kind = kName;
    while (is_letter(*to)) ++to;
  } else if (*from == '"') {
    kind = kQuoted;
    to = from + 1 + strcspn(from + 1, "\"");
    if (*to++ == '\0') fail_at(l, "the text does not end");
  } else {
    to += size_of_sign(from);
  }
  l->at = to;
  l->word = (Word){kind, from, (uint32_t)(to - from)};
}

static int is_word(const Lexer* l, const char* text) {
  return l->word.kind != kQuoted && l->word.size == strlen(text) &&
         memcmp(l->word.begin, text, l->word.size) == 0;
}

static int accept(Lexer* l, const char* text) {
  if (!is_word(l, text)) return 0;
  next_word(l);
  return 1;
}

static void expect(Lexer* l, const char* text) {
  if (accept(l, text)) return;
  char what[64];
  snprintf(what, sizeof what, "'%s' was expected", text);
  fail_at(l, what);
}

static void take_name(Lexer* l, char* name) {
  if (l->word.kind != kName) fail_at(l, "a name was expected");
  if (l->word.size >= kNameSize) fail_at(l, "the name is too long");
  memcpy(name, l->word.begin, l->word.size);
  name[l->word.size] = '\0';
  next_word(l);
}

#endif  // UPTIER_EXAMPLES_SCRIPT_LEXER_H
