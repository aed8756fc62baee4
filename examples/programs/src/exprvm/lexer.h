// Words of a script's text.
#ifndef UPTIER_EXAMPLES_EXPRVM_LEXER_H
#define UPTIER_EXAMPLES_EXPRVM_LEXER_H

#include <ctype.h>
#include <string.h>

#include "../program.h"

typedef enum { kEnd, kName, kInteger, kFraction, kSign } WordKind;

typedef struct Lexer {
  const char* at;
  uint32_t line;
  WordKind kind;
  const char* word;
  uint32_t size;
} Lexer;

static NOINLINE void fail(const char* what) {
  fprintf(stderr, "exprvm: %s\n", what);
  exit(1);
}

static NOINLINE void fail_at(const Lexer* l, const char* what) {
  fprintf(stderr, "exprvm: line %u, at '%.*s': %s\n", (unsigned)l->line, (int)l->size, l->word,
          what);
  exit(1);
}

static int is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char* skip_space(Lexer* l) {
  const char* at = l->at;
  for (;; ++at) {
    if (*at == '#') at += strcspn(at, "\n");
    if (*at == '\n') ++l->line;
    if (*at == '\0' || !isspace((unsigned char)*at)) return at;
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

static void next_word(Lexer* l) {
  const char* from = skip_space(l);
  const char* to = from;
  l->kind = kSign;
  if (*from == '\0') {
    l->kind = kEnd;
  } else if (isdigit((unsigned char)*from)) {
    l->kind = kInteger;
    for (; isdigit((unsigned char)*to) || *to == '.'; ++to) {
      if (*to == '.') l->kind = kFraction;
    }
  } else if (is_letter(*from)) {
    l->kind = kName;
    while (is_letter(*to)) ++to;
  } else {
    to += size_of_sign(from);
  }
  l->at = to;
  l->word = from;
  l->size = (uint32_t)(to - from);
}

static int is_word(const Lexer* l, const char* text) {
  return l->size == strlen(text) && memcmp(l->word, text, l->size) == 0;
}

static int accept(Lexer* l, const char* text) {
  if (!is_word(l, text)) return 0;
  next_word(l);
  return 1;
}

static void expect(Lexer* l, const char* text) {
  char what[64];
  if (accept(l, text)) return;
  snprintf(what, sizeof what, "'%s' was expected", text);
  fail_at(l, what);
}

#endif  // UPTIER_EXAMPLES_EXPRVM_LEXER_H
