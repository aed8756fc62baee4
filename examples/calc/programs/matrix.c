#include "native.h"

ARRAY(row, double)
ARRAY(matrix, struct row*)

static struct row* new_row(void) {
  struct row* r = calloc(1, sizeof *r);
  need(r != NULL, "out of memory");
  return r;
}

static struct matrix make(int64_t n, int64_t seed) {
  struct matrix m = {0, 0, NULL};
  double scale = 1 / (double)n / (double)n;
  for (int64_t i = 0; i < n; ++i) {
    struct row* row = new_row();
    for (int64_t j = 0; j < n; ++j) {
      row_push(row, scale * (double)sub(i, j) * (double)add(add(i, j), seed));
    }
    matrix_push(&m, row);
  }
  return m;
}

static struct matrix transpose(struct matrix* m, int64_t n) {
  struct matrix t = {0, 0, NULL};
  for (int64_t i = 0; i < n; ++i) {
    struct row* row = new_row();
    for (int64_t j = 0; j < n; ++j) row_push(row, *row_at(*matrix_at(m, j), i));
    matrix_push(&t, row);
  }
  return t;
}

static double dot(struct row* a, struct row* b, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum = sum + *row_at(a, k) * *row_at(b, k);
  return sum;
}

static void drop(struct matrix* m) {
  for (int64_t i = 0; i < m->length; ++i) {
    free(m->data[i]->data);
    free(m->data[i]);
  }
  free(m->data);
}

static struct matrix multiply(struct matrix* a, struct matrix* b, int64_t n) {
  struct matrix t = transpose(b, n), product = {0, 0, NULL};
  for (int64_t i = 0; i < n; ++i) {
    struct row* row = new_row();
    for (int64_t j = 0; j < n; ++j) row_push(row, dot(*matrix_at(a, i), *matrix_at(&t, j), n));
    matrix_push(&product, row);
  }
  drop(&t);
  return product;
}

int main(int argc, char** argv) {
  int64_t n = 60, rounds = arg(argc, argv, 3);
  double total = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    struct matrix a = make(n, round), b = make(n, 2), p = multiply(&a, &b, n);
    total = total + *row_at(*matrix_at(&p, n / 2), n / 2);
    drop(&a);
    drop(&b);
    drop(&p);
  }
  printf("%.9f\n", total);
}
