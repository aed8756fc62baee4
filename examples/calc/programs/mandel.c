#include "native.h"

static int64_t steps(double cx, double cy, int64_t limit) {
  double x = 0.0, y = 0.0;
  int64_t n = 0;
  while (n < limit) {
    double xx = x * x, yy = y * y;
    if (xx + yy > 4.0) return n;
    y = 2.0 * x * y + cy;
    x = xx - yy + cx;
    n = add(n, 1);
  }
  return n;
}

int main(int argc, char** argv) {
  int64_t size = arg(argc, argv, 60), limit = 200, inside = 0, total = 0;
  double scale = (double)size;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      int64_t n = steps(3.0 * (double)i / scale - 2.0, 2.0 * (double)j / scale - 1.0, limit);
      if (n == limit) inside = add(inside, 1);
      total = add(total, n);
    }
  }
  printf("%" PRId64 " %" PRId64 "\n", inside, total);
}
