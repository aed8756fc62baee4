// objects: a scene of shapes with tables of function pointers, visited by visitors that are
// themselves objects (double dispatch), and a chain of filter closures.
// Exercises call_indirect: sites with one target, with two, and with all; most callees are tiny.
// Size: number of frames (passes over the scene).
#include "program.h"

enum { kShapes = 600, kFilters = 5 };

typedef struct Shape Shape;
typedef struct Visitor Visitor;

typedef struct ShapeClass {
  const char* name;
  int32_t (*area)(const Shape* self);
  void (*move)(Shape* self, int32_t dx, int32_t dy);
  int32_t (*accept)(const Shape* self, Visitor* visitor);
} ShapeClass;

struct Shape {
  const ShapeClass* class;
  int32_t x, y;
  int32_t a, b;  // side lengths, radius: the class knows
  Shape* inner;  // of a frame
  uint32_t accepted;
};

struct Visitor {
  int32_t (*box)(Visitor* self, const Shape* shape);
  int32_t (*disc)(Visitor* self, const Shape* shape);
  int32_t (*other)(Visitor* self, const Shape* shape);
  uint64_t state;
};

// --- shapes ------------------------------------------------------------------------------------

static int32_t box_area(const Shape* s) { return s->a * s->b; }
static int32_t disc_area(const Shape* s) { return (int32_t)((int64_t)s->a * s->a * 355 / 113); }
static int32_t triangle_area(const Shape* s) { return s->a * s->b / 2; }
static int32_t frame_area(const Shape* s) { return s->a * s->b - s->inner->class->area(s->inner); }

static void move_plain(Shape* s, int32_t dx, int32_t dy) {
  s->x += dx;
  s->y += dy;
}
static void move_rolling(Shape* s, int32_t dx, int32_t dy) {
  s->x += dx + (dy >> 1);
  s->y += dy - (s->x & 1);
}
static void move_frame(Shape* s, int32_t dx, int32_t dy) {
  move_plain(s, dx, dy);
  s->inner->class->move(s->inner, dx, dy);
}

static int32_t box_accept(const Shape* s, Visitor* v) { return v->box(v, s); }
static int32_t disc_accept(const Shape* s, Visitor* v) { return v->disc(v, s); }
static int32_t other_accept(const Shape* s, Visitor* v) { return v->other(v, s); }
static int32_t frame_accept(const Shape* s, Visitor* v) {
  return v->other(v, s) + s->inner->class->accept(s->inner, v);
}

static const ShapeClass kClasses[] = {
    {"box", box_area, move_plain, box_accept},
    {"disc", disc_area, move_rolling, disc_accept},
    {"triangle", triangle_area, move_plain, other_accept},
    {"frame", frame_area, move_frame, frame_accept},
};
enum { kClassCount = sizeof kClasses / sizeof kClasses[0] };

static Shape* make_shape(uint32_t class, uint32_t* random) {
  Shape* s = calloc(1, sizeof *s);
  if (s == NULL) exit(1);
  s->class = &kClasses[class];
  s->x = (int32_t)(next_random(random) & 0xfff);
  s->y = (int32_t)(next_random(random) & 0xfff);
  s->a = 1 + (int32_t)(next_random(random) & 0xff);
  s->b = 1 + (int32_t)(next_random(random) & 0xff);
  if (s->class->area == frame_area) s->inner = make_shape(next_random(random) % 3, random);
  return s;
}

// --- visitors ----------------------------------------------------------------------------------

static int32_t reach_box(Visitor* v, const Shape* s) {
  v->state += (uint32_t)(s->x + s->a) & 0xffff;
  return s->x + s->a;
}
static int32_t reach_disc(Visitor* v, const Shape* s) {
  v->state += (uint32_t)s->a;
  return s->x > s->y ? s->x + s->a : s->y + s->a;
}
static int32_t reach_other(Visitor* v, const Shape* s) {
  v->state ^= (uint32_t)s->y;
  return s->y + s->b;
}

static int32_t hash_any(Visitor* v, const Shape* s) {
  v->state = fold(v->state, (uint32_t)(s->x * 31 + s->y));
  return (int32_t)(v->state & 0xff);
}
static int32_t hash_disc(Visitor* v, const Shape* s) {
  v->state = fold(v->state, (uint32_t)s->a);
  return 1;
}

// --- filters -----------------------------------------------------------------------------------

typedef struct Filter {
  int (*keep)(const struct Filter* self, const Shape* shape);
  int32_t limit;
  struct Filter* next;
} Filter;

static int keep_large(const Filter* f, const Shape* s) { return s->class->area(s) >= f->limit; }
static int keep_left(const Filter* f, const Shape* s) { return (s->x & 0x1fff) < f->limit; }
static int keep_odd(const Filter* f, const Shape* s) { return ((s->x ^ s->y) % f->limit) != 0; }

static NOINLINE uint32_t count_kept(const Filter* filters, Shape* const* shapes) {
  uint32_t kept = 0;
  for (int i = 0; i < kShapes; ++i) {
    const Filter* f = filters;
    while (f != NULL && f->keep(f, shapes[i])) f = f->next;
    if (f == NULL) {
      ++kept;
      ++shapes[i]->accepted;
    }
  }
  return kept;
}

// --- one frame ---------------------------------------------------------------------------------

static NOINLINE int64_t total_area(Shape* const* shapes) {
  int64_t sum = 0;
  for (int i = 0; i < kShapes; ++i) sum += shapes[i]->class->area(shapes[i]);
  return sum;
}

static NOINLINE void move_all(Shape* const* shapes, int32_t dx, int32_t dy) {
  for (int i = 0; i < kShapes; ++i) shapes[i]->class->move(shapes[i], dx, dy);
}

static NOINLINE int64_t visit_all(Shape* const* shapes, Visitor* visitor) {
  int64_t sum = 0;
  for (int i = 0; i < kShapes; ++i) sum += shapes[i]->class->accept(shapes[i], visitor);
  return sum;
}

// The first third of the scene holds boxes only, the second boxes and discs, the last anything.
static void make_scene(Shape** shapes) {
  uint32_t random = 0xC0FFEEu;
  for (uint32_t i = 0; i < kShapes; ++i) {
    uint32_t classes = i < kShapes / 3 ? 1 : i < 2 * kShapes / 3 ? 2 : kClassCount;
    shapes[i] = make_shape(next_random(&random) % classes, &random);
  }
}

int main(int argc, char** argv) {
  static Shape* shapes[kShapes];
  Filter filters[kFilters] = {{keep_left, 8000, &filters[1]},
                              {keep_large, 500, &filters[2]},
                              {keep_odd, 7, &filters[3]},
                              {keep_left, 5000, &filters[4]},
                              {keep_odd, 5, NULL}};
  Visitor reach = {reach_box, reach_disc, reach_other, 0};
  Visitor hash = {hash_any, hash_disc, hash_any, 0};
  uint32_t frames = size_argument(argc, argv, 400);
  make_scene(shapes);
  int64_t area = 0, reached = 0, hashed = 0;
  uint32_t kept = 0;
  for (uint32_t frame = 0; frame < frames; ++frame) {
    move_all(shapes, (int32_t)(frame % 7) - 3, (int32_t)(frame % 5) - 2);
    area += total_area(shapes);
    reached += visit_all(shapes, &reach);
    hashed += visit_all(shapes, &hash);
    kept += count_kept(filters, shapes);
  }
  uint64_t checksum = fold(fold(hash.state, reach.state), (uint64_t)(area ^ reached ^ hashed));
  for (int i = 0; i < kShapes; ++i) {
    checksum = fold(checksum, shapes[i]->accepted);
    free(shapes[i]->inner);
    free(shapes[i]);
  }
  printf("objects %" PRIu32 " frames: area %" PRId64 ", reach %" PRId64 ", kept %" PRIu32 "\n",
         frames, area, reached, kept);
  print_checksum("objects", checksum);
  return 0;
}
