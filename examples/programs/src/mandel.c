// mandel: escape times of the Mandelbrot set in double and of a Julia set in single precision.
// Exercises float and double arithmetic in registers, with a loop exit that depends on a
// comparison of floats; there is hardly any memory traffic.
// Built for plain MVP wasm. Size: width of the picture in pixels.
#include "program.h"

enum { kLimit = 200, kSketchRows = 9, kSketchColumns = 36 };

static NOINLINE uint32_t mandelbrot(double cx, double cy) {
  double x = 0.0, y = 0.0;
  uint32_t count = 0;
  for (; count < kLimit; ++count) {
    double xx = x * x, yy = y * y;
    if (xx + yy > 4.0) break;
    y = 2.0 * x * y + cy;
    x = xx - yy + cx;
  }
  return count;
}

static NOINLINE uint32_t julia(float x, float y) {
  const float cx = -0.75f, cy = 0.125f;
  uint32_t count = 0;
  for (; count < kLimit; ++count) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
  }
  return count;
}

// A small picture, so that a wrong answer can be seen.
static void print_sketch(void) {
  static const char kShades[] = " .:-=+*%#@";
  for (int row = 0; row < kSketchRows; ++row) {
    char line[kSketchColumns + 1];
    for (int column = 0; column < kSketchColumns; ++column) {
      uint32_t count = mandelbrot(-2.2 + column * 0.085, -1.2 + row * 0.3);
      line[column] = kShades[count >= kLimit ? 9 : count / 2 < 8 ? count / 2 : 8];
    }
    line[kSketchColumns] = '\0';
    printf("mandel |%s|\n", line);
  }
}

int main(int argc, char** argv) {
  uint32_t width = size_argument(argc, argv, 230);
  uint32_t height = width * 3 / 4;
  uint64_t mandelbrot_sum = 0, julia_sum = 0, checksum = 0;
  for (uint32_t row = 0; row < height; ++row) {
    for (uint32_t column = 0; column < width; ++column) {
      double u = (double)column / width, v = (double)row / height;
      uint32_t m = mandelbrot(-2.2 + 3.0 * u, -1.2 + 2.4 * v);
      uint32_t j = julia((float)(3.2 * u - 1.6), (float)(2.4 * v - 1.2));
      mandelbrot_sum += m;
      julia_sum += j;
      checksum = fold(checksum, m << 16 | j);
    }
  }
  print_sketch();
  printf("mandel width %" PRIu32 ": mandelbrot %" PRIu64 ", julia %" PRIu64 "\n", width,
         mandelbrot_sum, julia_sum);
  print_checksum("mandel", checksum);
  return 0;
}
