#include <math.h>

#include "native.h"

struct body {
  double x, y, z, vx, vy, vz, mass;
};
ARRAY(bodies, struct body*)

static const double kPi = 3.141592653589793, kYear = 365.24;

static void add_body(struct bodies* all, const double place[3], const double v[3], double mass) {
  struct body* b = malloc(sizeof *b);
  need(b != NULL, "out of memory");
  *b = (struct body){place[0],
                     place[1],
                     place[2],
                     v[0] * kYear,
                     v[1] * kYear,
                     v[2] * kYear,
                     mass * (4 * kPi * kPi)};
  bodies_push(all, b);
}

static void advance(struct bodies* all, double dt) {
  int64_t n = all->length;
  for (int64_t i = 0; i < n; ++i) {
    struct body* a = *bodies_at(all, i);
    for (int64_t j = i + 1; j < n; ++j) {
      struct body* b = *bodies_at(all, j);
      double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
      double d2 = dx * dx + dy * dy + dz * dz;
      double mag = dt / (d2 * sqrt(d2));
      a->vx = a->vx - dx * b->mass * mag;
      a->vy = a->vy - dy * b->mass * mag;
      a->vz = a->vz - dz * b->mass * mag;
      b->vx = b->vx + dx * a->mass * mag;
      b->vy = b->vy + dy * a->mass * mag;
      b->vz = b->vz + dz * a->mass * mag;
    }
  }
  for (int64_t k = 0; k < n; ++k) {
    struct body* p = *bodies_at(all, k);
    p->x = p->x + dt * p->vx;
    p->y = p->y + dt * p->vy;
    p->z = p->z + dt * p->vz;
  }
}

static double energy(struct bodies* all) {
  double e = 0;
  for (int64_t i = 0; i < all->length; ++i) {
    struct body* a = *bodies_at(all, i);
    e = e + 0.5 * a->mass * (a->vx * a->vx + a->vy * a->vy + a->vz * a->vz);
    for (int64_t j = i + 1; j < all->length; ++j) {
      struct body* b = *bodies_at(all, j);
      double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
      e = e - a->mass * b->mass / sqrt(dx * dx + dy * dy + dz * dz);
    }
  }
  return e;
}

static void offset(struct bodies* all) {
  double px = 0, py = 0, pz = 0;
  for (int64_t i = 0; i < all->length; ++i) {
    struct body* a = *bodies_at(all, i);
    px = px + a->vx * a->mass;
    py = py + a->vy * a->mass;
    pz = pz + a->vz * a->mass;
  }
  struct body* sun = *bodies_at(all, 0);
  double mass = 4 * kPi * kPi;
  sun->vx = -px / mass;
  sun->vy = -py / mass;
  sun->vz = -pz / mass;
}

int main(int argc, char** argv) {
  static const double kBodies[5][7] = {
      {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0},
      {4.84143144246472090e+00, -1.16032004402742839e+00, -1.03622044471123109e-01,
       1.66007664274403694e-03, 7.69901118419740425e-03, -6.90460016972063023e-05,
       9.54791938424326609e-04},
      {8.34336671824457987e+00, 4.12479856412430479e+00, -4.03523417114321381e-01,
       -2.76742510726411899e-03, 4.99852801234917238e-03, 2.30417297573763929e-05,
       2.85885980666130812e-04},
      {1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01,
       2.96460137564761618e-03, 2.37847173959480950e-03, -2.96589568540237556e-05,
       4.36624404335156298e-05},
      {1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01,
       2.68067772490389322e-03, 1.62824170038242295e-03, -9.51592259519715870e-05,
       5.15138902046611451e-05}};
  struct bodies all = {0, 0, NULL};
  for (int k = 0; k < 5; ++k) add_body(&all, kBodies[k], kBodies[k] + 3, kBodies[k][6]);
  offset(&all);
  printf("%.9f\n", energy(&all));
  int64_t steps = arg(argc, argv, 3000);
  for (int64_t i = 0; i < steps; ++i) advance(&all, 0.01);
  printf("%.9f\n", energy(&all));
}
