// cat: copies the named files, or stdin without any ("-" is stdin too), to stdout.
// Exercises stdio over WASI: path_open, fd_read, fd_write, end of file and errors. The exit code
// is 1 when a file cannot be opened; the other files are copied all the same.
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int copy(FILE* in) {
  char buffer[4096];
  size_t size;
  while ((size = fread(buffer, 1, sizeof buffer, in)) > 0) {
    if (fwrite(buffer, 1, size, stdout) != size) return 0;
  }
  return !ferror(in);
}

static int copy_named(const char* name) {
  if (strcmp(name, "-") == 0) return copy(stdin);
  FILE* in = fopen(name, "rb");
  int copied = in != NULL && copy(in);
  if (!copied) fprintf(stderr, "cat: %s: %s\n", name, strerror(errno));
  if (in != NULL) fclose(in);
  return copied;
}

int main(int argc, char** argv) {
  int failed = argc < 2 && !copy(stdin);
  for (int i = 1; i < argc; ++i) failed |= !copy_named(argv[i]);
  return failed | (fflush(stdout) != 0);
}
