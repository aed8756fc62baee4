// A parser of expressions with code that does not run, for coverage: errors that never happen, branches
// of a switch, code after endless loops, early returns, and functions that are never called.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { kNumber, kPlus, kMinus, kTimes, kOver, kOpen, kClose, kEnd, kBad };

static const char* text;
static enum kind token;
static long value;
static int errors;

static void fail(const char* why) {
  fprintf(stderr, "error: %s\n", why);
  errors++;
  if (errors > 3) {
    fprintf(stderr, "too many errors\n");
    exit(3);
  }
}

static void next(void) {
  while (isspace((unsigned char)*text)) text++;
  if (*text == 0) {
    token = kEnd;
    return;
  }
  if (isdigit((unsigned char)*text)) {
    value = strtol(text, (char**)&text, 10);
    token = kNumber;
    return;
  }
  switch (*text++) {
    case '+': token = kPlus; break;
    case '-': token = kMinus; break;
    case '*': token = kTimes; break;
    case '/': token = kOver; break;
    case '(': token = kOpen; break;
    case ')': token = kClose; break;
    default: token = kBad; fail("unknown character");
  }
}

static long sum(void);

static long primary(void) {
  long v = 0;
  if (token == kNumber) {
    v = value;
    next();
  } else if (token == kOpen) {
    next();
    v = sum();
    if (token != kClose)
      fail("missing )");
    else
      next();
  } else if (token == kMinus) {
    next();
    v = -primary();
  } else {
    fail("missing number");
  }
  return v;
}

static long product(void) {
  long v = primary();
  for (;;) {
    if (token == kTimes) {
      next();
      v *= primary();
    } else if (token == kOver) {
      next();
      long by = primary();
      if (by == 0) {
        fail("division by zero");
        return 0;
      }
      v /= by;
    } else {
      return v;
    }
  }
}

static long sum(void) {
  long v = product();
  while (token == kPlus || token == kMinus) {
    int plus = token == kPlus;
    next();
    long w = product();
    v = plus ? v + w : v - w;
  }
  return v;
}

static long parse(const char* s) {
  text = s;
  next();
  long v = sum();
  if (token != kEnd) fail("more after the end");
  return v;
}

int unused(int n) {
  do { n = n * 3 + 1; } while (n % 7 != 0);
  return n;
}

static const char* name_of(enum kind k) {
  switch (k) {
    case kNumber: return "number";
    case kPlus: return "plus";
    case kMinus: return "minus";
    case kTimes: return "times";
    default: return "other";
  }
}

int main(int argc, char** argv) {
  static const char* const lines[] = {"1 + 2 * 3", "(4 - 5) * 6", "7 * (8 - 2) * 2", "12"};
  long all = 0;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    long v = parse(lines[i]);
    printf("%s = %ld\n", lines[i], v);
    if (v < 0 && i > 2) goto out;
    all += v;
  }
  if (argc > 5) all = unused(argc) + (argv[1] != NULL);
  printf("%ld %s %s\n", all, name_of(kPlus), all > 1000 ? "large" : "small");
  if (all == 12345) {
  out:
    puts("out");
    return 1;
  }
  if (all > 0) exit(0);
  puts("nothing");
  return 2;
}
