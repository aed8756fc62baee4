// spectral: the largest singular value of an infinite matrix's upper left corner, by the power
// method; an element is computed when it is needed, never stored.
// Exercises double division, integer to double conversion and dense inner loops with a small
// callee. Size: order of the corner.
#include <math.h>

#include "program.h"

static double element(uint32_t row, uint32_t column) {
  uint32_t diagonal = row + column;
  return 1.0 / (double)(diagonal * (diagonal + 1) / 2 + row + 1);
}

static NOINLINE void times(uint32_t order, const double* in, double* out) {
  for (uint32_t row = 0; row < order; ++row) {
    double sum = 0.0;
    for (uint32_t column = 0; column < order; ++column) sum += element(row, column) * in[column];
    out[row] = sum;
  }
}

static NOINLINE void times_transposed(uint32_t order, const double* in, double* out) {
  for (uint32_t row = 0; row < order; ++row) {
    double sum = 0.0;
    for (uint32_t column = 0; column < order; ++column) sum += element(column, row) * in[column];
    out[row] = sum;
  }
}

static double dot(uint32_t order, const double* a, const double* b) {
  double sum = 0.0;
  for (uint32_t i = 0; i < order; ++i) sum += a[i] * b[i];
  return sum;
}

int main(int argc, char** argv) {
  uint32_t order = size_argument(argc, argv, 450);
  double* u = malloc(order * sizeof *u);
  double* v = malloc(order * sizeof *v);
  double* between = malloc(order * sizeof *between);
  if (u == NULL || v == NULL || between == NULL) return 1;
  for (uint32_t i = 0; i < order; ++i) u[i] = 1.0;
  for (int i = 0; i < 10; ++i) {
    times(order, u, between);
    times_transposed(order, between, v);
    times(order, v, between);
    times_transposed(order, between, u);
  }
  double norm = sqrt(dot(order, u, v) / dot(order, v, v));
  printf("spectral order %" PRIu32 ": norm %.9f\n", order, norm);
  print_checksum("spectral", (uint64_t)(norm * 1e15));
  free(between);
  free(v);
  free(u);
  return 0;
}
