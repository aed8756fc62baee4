// Words of a statement, and expressions as trees.
#ifndef UPTIER_EXAMPLES_STORE_PARSER_H
#define UPTIER_EXAMPLES_STORE_PARSER_H

#include <ctype.h>

#include "value.h"

enum { kMostNodes = 256, kMostParts = 12 };
typedef enum { kEnd, kName, kNumber, kQuoted, kSign } WordKind;

typedef struct Lexer {
  const char* at;
  WordKind kind;
  const char* word;
  uint32_t size;
} Lexer;

// clang-format off
typedef enum {
  kNothing, kLiteral, kString, kGiven, kColumnOf, kBinary, kUnary, kBoth, kEither, kNegated, kBetween,
  kCall, kAggregate, kCase
} NodeKind;
// clang-format on

// A node of an expression. `op` is a sign's first two characters or a number; parts are nodes.
typedef struct Node {
  NodeKind kind;
  uint32_t op;
  int32_t parts[3];
  uint32_t count;
  int64_t number;
  const char* text;
  uint32_t size;
} Node;

typedef struct Parser {
  Lexer l;
  Node nodes[kMostNodes];
  uint32_t count;
} Parser;

static NOINLINE void fail_at(const Lexer* l, const char* what) {
  fprintf(stderr, "store: at '%.*s': %s\n", (int)l->size, l->word, what);
  exit(1);
}

static int is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void next_word(Lexer* l) {
  const char* at = l->at;
  while (isspace((unsigned char)*at)) ++at;
  l->word = at;
  if (*at == '\0') {
    l->kind = kEnd;
  } else if (isdigit((unsigned char)*at)) {
    l->kind = kNumber;
    while (isdigit((unsigned char)*at)) ++at;
  } else if (is_letter(*at)) {
    l->kind = kName;
    while (is_letter(*at)) ++at;
  } else if (*at == '\'') {
    l->kind = kQuoted;
    at += 1 + strcspn(at + 1, "'");
    if (*at++ == '\0') fail_at(l, "the text does not end");
  } else {
    static const char* const kLong[] = {"<=", ">=", "<>", "||", "<<", ">>"};
    l->kind = kSign;
    ++at;
    for (uint32_t i = 0; i < 6; ++i) {
      if (l->word[0] == kLong[i][0] && l->word[1] == kLong[i][1]) at = l->word + 2;
    }
  }
  l->at = at;
  l->size = (uint32_t)(at - l->word);
}

static int is_word(const Lexer* l, const char* text) {
  return l->kind != kQuoted && l->size == strlen(text) && memcmp(l->word, text, l->size) == 0;
}

static int accept(Lexer* l, const char* text) {
  if (!is_word(l, text)) return 0;
  next_word(l);
  return 1;
}

static void expect(Lexer* l, const char* text) {
  if (!accept(l, text)) fail_at(l, "another word was expected");
}

static int64_t take_number(Lexer* l) {
  Value v = of_text(l->word, l->size);
  if (l->kind != kNumber) fail_at(l, "a number was expected");
  next_word(l);
  return number_of(&v);
}

static uint32_t sign_of(const char* text, uint32_t size) {
  return (uint32_t)(uint8_t)text[0] | (size > 1 ? (uint32_t)(uint8_t)text[1] << 8 : 0);
}
static uint32_t sign(const char* text) { return sign_of(text, (uint32_t)strlen(text)); }

static int32_t add_node(Parser* p, NodeKind kind, uint32_t op, int32_t a, int32_t b) {
  if (p->count == kMostNodes) fail("the statement is too long");
  p->nodes[p->count] = (Node){kind, op, {a, b, -1}, (uint32_t)((a >= 0) + (b >= 0)), 0, NULL, 0};
  return (int32_t)p->count++;
}

static void name_node(Parser* p, int32_t n) {
  p->nodes[n].text = p->l.word;
  p->nodes[n].size = p->l.size;
  next_word(&p->l);
}

static int32_t parse_expression(Parser* p);

static int is_aggregate(const Lexer* l) {
  return is_word(l, "count") || is_word(l, "sum") || is_word(l, "least") || is_word(l, "most");
}

static int32_t parse_case(Parser* p) {
  int32_t n = add_node(p, kCase, 0, -1, -1);
  expect(&p->l, "when");
  p->nodes[n].parts[0] = parse_expression(p);
  expect(&p->l, "then");
  p->nodes[n].parts[1] = parse_expression(p);
  expect(&p->l, "else");
  p->nodes[n].parts[2] = parse_expression(p);
  expect(&p->l, "end");
  p->nodes[n].count = 3;
  return n;
}

static int32_t parse_primary(Parser* p) {
  Lexer* l = &p->l;
  int32_t n;
  if (l->kind == kNumber) {
    n = add_node(p, kLiteral, 0, -1, -1);
    p->nodes[n].number = take_number(l);
    return n;
  }
  if (l->kind == kQuoted) {
    n = add_node(p, kString, 0, -1, -1);
    name_node(p, n);
    return n;
  }
  if (accept(l, "?")) {
    n = add_node(p, kGiven, (uint32_t)take_number(l), -1, -1);
    return n;
  }
  if (accept(l, "(")) {
    n = parse_expression(p);
    expect(l, ")");
    return n;
  }
  if (accept(l, "-")) return add_node(p, kUnary, sign("-"), parse_primary(p), -1);
  if (accept(l, "case")) return parse_case(p);
  if (accept(l, "null")) return add_node(p, kNothing, 0, -1, -1);
  if (l->kind != kName) fail_at(l, "a value was expected");
  NodeKind kind = is_aggregate(l) ? kAggregate : kColumnOf;
  n = add_node(p, kind, 0, -1, -1);
  name_node(p, n);
  if (accept(l, "(")) {
    if (kind != kAggregate) p->nodes[n].kind = kCall;
    while (!accept(l, ")")) {
      if (p->nodes[n].count == 3) fail_at(l, "too many arguments");
      int32_t part = accept(l, "*") ? add_node(p, kLiteral, 0, -1, -1) : parse_expression(p);
      p->nodes[n].parts[p->nodes[n].count++] = part;
      accept(l, ",");
    }
  } else if (accept(l, ".")) {
    int32_t column = add_node(p, kColumnOf, 0, n, -1);  // its part is the name of the table
    name_node(p, column);
    return column;
  }
  return n;
}

// Returns how tightly a sign binds; 0 for other words.
static int strength_of(const Lexer* l) {
  static const char* const kSigns[][8] = {{"=", "<>", "<", "<=", ">", ">=", "like", NULL},
                                          {"+", "-", "||", "&", "|", NULL},
                                          {"*", "/", "%", "<<", ">>", NULL}};
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; kSigns[i][k] != NULL; ++k) {
      if (is_word(l, kSigns[i][k])) return i + 1;
    }
  }
  return 0;
}

static int32_t parse_signs(Parser* p, int least) {
  int32_t left = parse_primary(p);
  for (;;) {
    int strength = strength_of(&p->l);
    if (strength == 0 || strength < least) return left;
    uint32_t op = sign_of(p->l.word, p->l.size);
    next_word(&p->l);
    int32_t right = parse_signs(p, strength + 1);
    left = add_node(p, kBinary, op, left, right);
  }
}

static int32_t parse_comparison(Parser* p) {
  if (accept(&p->l, "not")) return add_node(p, kNegated, 0, parse_comparison(p), -1);
  int32_t left = parse_signs(p, 1);
  if (!accept(&p->l, "between")) return left;
  int32_t n = add_node(p, kBetween, 0, left, -1);
  p->nodes[n].parts[1] = parse_signs(p, 2);
  expect(&p->l, "and");
  p->nodes[n].parts[2] = parse_signs(p, 2);
  p->nodes[n].count = 3;
  return n;
}

static int32_t parse_and(Parser* p) {
  int32_t left = parse_comparison(p);
  while (accept(&p->l, "and")) left = add_node(p, kBoth, 0, left, parse_comparison(p));
  return left;
}

static int32_t parse_expression(Parser* p) {
  int32_t left = parse_and(p);
  while (accept(&p->l, "or")) left = add_node(p, kEither, 0, left, parse_and(p));
  return left;
}

#endif  // UPTIER_EXAMPLES_STORE_PARSER_H
