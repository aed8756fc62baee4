#include "native.h"

static int64_t fib(int64_t n) {
  if (n < 2) return n;
  return add(fib(sub(n, 1)), fib(sub(n, 2)));
}

int main(int argc, char** argv) { printf("%" PRId64 "\n", fib(arg(argc, argv, 22))); }
