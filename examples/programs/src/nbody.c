// nbody: gravitation between six bodies, integrated with the leapfrog scheme.
// Exercises double arithmetic with division and square root in a small triangular loop nest; the
// values of a body stay in memory, those of a pair in registers.
// Size: number of steps.
#include <math.h>

#include "program.h"

enum { kBodies = 6 };

typedef struct Body {
  double position[3];
  double velocity[3];
  double mass;
} Body;

static double uniform(uint32_t* random) { return next_random(random) / 4294967296.0; }

// A heavy body in the middle and light ones on nearly circular orbits around it.
static void place(Body* bodies) {
  uint32_t random = 2463534242u;
  bodies[0] = (Body){.mass = 40.0};
  for (int i = 1; i < kBodies; ++i) {
    double radius = 1.5 * i + 0.3 * uniform(&random);
    double speed = sqrt(bodies[0].mass / radius);
    double tilt = 0.2 * (uniform(&random) - 0.5);
    double side = (i & 1) != 0 ? 1.0 : -1.0;
    bodies[i] = (Body){.position = {side * radius, 0.0, tilt},
                       .velocity = {tilt, side * speed, 0.1 * tilt},
                       .mass = 0.01 + 0.05 * uniform(&random)};
  }
}

static NOINLINE void kick(Body* bodies, double dt) {
  for (int i = 0; i < kBodies; ++i) {
    Body* a = &bodies[i];
    for (int j = i + 1; j < kBodies; ++j) {
      Body* b = &bodies[j];
      double dx = a->position[0] - b->position[0];
      double dy = a->position[1] - b->position[1];
      double dz = a->position[2] - b->position[2];
      double square = dx * dx + dy * dy + dz * dz;
      double pull = dt / (square * sqrt(square));
      double on_a = b->mass * pull, on_b = a->mass * pull;
      a->velocity[0] -= dx * on_a;
      a->velocity[1] -= dy * on_a;
      a->velocity[2] -= dz * on_a;
      b->velocity[0] += dx * on_b;
      b->velocity[1] += dy * on_b;
      b->velocity[2] += dz * on_b;
    }
  }
}

static NOINLINE void drift(Body* bodies, double dt) {
  for (int i = 0; i < kBodies; ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      bodies[i].position[axis] += dt * bodies[i].velocity[axis];
    }
  }
}

static double energy(const Body* bodies) {
  double sum = 0.0;
  for (int i = 0; i < kBodies; ++i) {
    const Body* a = &bodies[i];
    const double* v = a->velocity;
    sum += 0.5 * a->mass * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int j = i + 1; j < kBodies; ++j) {
      const Body* b = &bodies[j];
      double square = 0.0;
      for (int axis = 0; axis < 3; ++axis) {
        double d = a->position[axis] - b->position[axis];
        square += d * d;
      }
      sum -= a->mass * b->mass / sqrt(square);
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  uint32_t steps = size_argument(argc, argv, 90000);
  const double dt = 0.001;
  Body bodies[kBodies];
  place(bodies);
  double before = energy(bodies);
  for (uint32_t i = 0; i < steps; ++i) {
    drift(bodies, 0.5 * dt);
    kick(bodies, dt);
    drift(bodies, 0.5 * dt);
  }
  double after = energy(bodies);
  uint64_t checksum = 0;
  for (int i = 0; i < kBodies; ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      checksum = fold(checksum, (uint64_t)(int64_t)(bodies[i].position[axis] * 1e9));
    }
  }
  printf("nbody %" PRIu32 " steps: energy %.9f, then %.9f\n", steps, before, after);
  print_checksum("nbody", checksum);
  return 0;
}
