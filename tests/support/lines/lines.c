// A program whose lines the tests know; build.sh makes the modules in tests/fuzz/corpus/dwarf of it.
#define EXPORT(name) __attribute__((export_name(#name), noinline))

static int table[16];

static inline __attribute__((always_inline)) int square(int x) {
  return x * x + 1;  // line 7
}

static inline __attribute__((always_inline)) int sum(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) {
    if (i % 3 == 0)
      s += square(i) ^ table[i & 15];  // line 14
    else
      s -= i;
  }
  return s;
}

EXPORT(divide) int divide(int a, int b) {
  return a / b;  // line 22
}

EXPORT(never) int never(int a) {
  if (a > 3) return 1;
  return divide(a, 2);
}

EXPORT(_start) void start(void) {
  for (int i = 0; i < 2000; i++) table[i & 15] += sum(100);
  table[1] = divide(table[2], 3);
}

EXPORT(middle) int middle(int a) {
  return divide(a, a - 3) + 1;  // line 36; traps for 3
}

EXPORT(outer) int outer(int a) {
  return middle(a) * 2;  // line 40
}

EXPORT(deep) int deep(int n) {
  if (n == 0) return outer(3);
  return deep(n - 1) + n;  // line 45
}
